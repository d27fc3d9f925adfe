/**
 * From a turn's end to the answer of its prompt. What the wire says is what the log says.
 */
import { errorCatalogue, type ErrorCode, type WireError } from '../../shared/errors.ts';
import type { TurnOutcome } from '../../shared/thread-protocol.ts';
import type { TurnEnd } from '../agent/turn.ts';

export function turnOutcome({ reason, usage }: TurnEnd): TurnOutcome {
  switch (reason.kind) {
    case 'completed':
      return { ok: true, stopReason: 'end_turn', usage };
    case 'max-tokens':
      return { ok: true, stopReason: 'max_tokens', usage };
    case 'max-turn-requests':
      return { ok: true, stopReason: 'max_turn_requests', usage };
    case 'refusal':
      return { ok: true, stopReason: 'refusal', usage };
    case 'cancelled':
    case 'disposed':
    case 'interrupted':
      return { ok: true, stopReason: 'cancelled', usage };
    case 'error':
      return { ok: false, error: turnError(reason.code, reason.message) };
    default:
      return reason satisfies never;
  }
}

/** ACP has no stop reason for an error: the prompt is answered with one, in words that a person can act on. */
function turnError(code: string, message: string): WireError {
  // The catalogue's INVALID_REQUEST is about the client's frames; a turn's is the model server's word about ours.
  if (code !== 'INVALID_REQUEST' && isCatalogued(code)) return { code, message };
  if (code === 'AUTH') return { code: 'AUTH_REQUIRED', message };
  return { code: 'MODEL_FAILED', message: `The turn failed: ${message}`, data: { reason: code } };
}

function isCatalogued(code: string): code is ErrorCode {
  return Object.hasOwn(errorCatalogue, code);
}
