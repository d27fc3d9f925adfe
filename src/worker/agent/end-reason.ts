/**
 * Turns what was thrown into the reason of an error turn. Only texts made for people get through.
 */
import { ServerError } from '../../shared/errors.ts';
import type { TurnEndReason } from '../../shared/events.ts';
import { ModelFailure } from '../model/model-adapter.ts';

export function errorReason(error: unknown): TurnEndReason {
  if (error instanceof ServerError || error instanceof ModelFailure) return { kind: 'error', code: error.code, message: error.message };
  return { kind: 'error', code: 'INTERNAL', message: 'The agent met an unexpected fault.' };
}
