/**
 * From a turn's end to the answer of its prompt. What the wire says is what the log says.
 */
import { errorCatalogue, type ErrorCode, type WireError } from '../../shared/errors.ts';
import type { EventData, TurnEndReason } from '../../shared/events.ts';
import type { Budget } from '../../shared/session-options.ts';
import type { TurnOutcome } from '../../shared/thread-protocol.ts';

/** A turn's end as the agent tells it, or the log. */
export type EndedTurn = Pick<EventData['turn/end'], 'reason' | 'usage' | 'structured'> & { readonly left?: Budget };

/** @param text the turn's last text, where the profile answers with it */
export function turnOutcome(end: EndedTurn, text: string | undefined): TurnOutcome {
  const { reason, usage, structured, left } = end;
  const said = text === undefined ? {} : { text };
  if (reason.kind === 'error') return { ok: false, error: turnError(reason.code, reason.message), usage, ...said };
  return {
    ok: true,
    stopReason: stopReasonOf(reason),
    usage,
    ...said,
    ...(structured === undefined ? {} : { structured }),
    ...(reason.kind === 'max-turn-requests' ? { spent: { budget: reason.budget, scope: reason.scope ?? 'turn' } } : {}),
    ...(left === undefined ? {} : { left }),
  };
}

function stopReasonOf(reason: Exclude<TurnEndReason, { kind: 'error' }>): Extract<TurnOutcome, { ok: true }>['stopReason'] {
  switch (reason.kind) {
    case 'completed':
      return 'end_turn';
    case 'max-tokens':
      return 'max_tokens';
    case 'max-turn-requests':
      return 'max_turn_requests';
    case 'refusal':
      return 'refusal';
    case 'cancelled':
    case 'disposed':
    case 'interrupted':
      return 'cancelled';
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
