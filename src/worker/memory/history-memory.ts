/**
 * Keeps a conversation within the memory that a session may hold: cuts its oldest part where it does not fit, and says so to the
 * model in the place of what was cut. The log keeps all of it.
 */
import type { AgentContext } from '../agent/agent-context.ts';
import type { History } from '../agent/history.ts';
import { unitChars, unitImages } from '../agent/history-unit.ts';
import type { TurnScope } from '../agent/turn-scope.ts';
import { bytesPerChar } from './session-memory.ts';

/** Of the limit: where a conversation is cut, and what is left of it, so that the next turn has room to work in. */
const startShare = 0.75;
const keptShare = 0.5;

const notice =
  'The earlier part of the conversation was too large for the memory that a session may hold. It was left out, and not summarized: read again what you need of it.';

/**
 * Before a step. Logged as a compaction, since to the model it is one. The running turn stays as it is: one that is too large by
 * itself ends, and is cut by the next.
 *
 * @throws ServerError LOG_WRITE_FAILED
 */
export function fitMemory(context: AgentContext, scope: TurnScope): void {
  if (fitsMemory(context)) return;
  const { history, memory } = context;
  const throughSeq = seqToCut(history, memory.limitBytes * keptShare) ?? history.cutThrough;
  if (throughSeq !== undefined) scope.record({ type: 'history/compacted', data: { throughSeq, summary: notice } });
}

/** Whether there is nothing to cut before a step, nor a cut to log. */
export function fitsMemory({ history, memory }: AgentContext): boolean {
  return history.cutThrough === undefined && history.bytes <= memory.limitBytes * startShare;
}

/** While a log is replayed, behind event `seq`: what would be cut before the next step anyway must not be held until then. */
export function boundReplay(history: History, limitBytes: number, seq: number): void {
  if (history.bytes <= limitBytes) return;
  const throughSeq = seqToCut(history, limitBytes * keptShare);
  if (throughSeq !== undefined) history.cut(throughSeq, seq);
}

/** The last event of the oldest units that must go to leave at most `keepBytes`; of turns before the running one alone. */
function seqToCut({ units, turn, bytes }: History, keepBytes: number): number | undefined {
  let left = bytes;
  let throughSeq: number | undefined;
  for (const unit of units) {
    if (left <= keepBytes || unit.turn >= turn) break;
    left -= bytesPerChar * (unitChars(unit) + unitImages(unit).chars);
    throughSeq = unit.lastSeq;
  }
  return throughSeq;
}
