/**
 * Takes a place at the provider for one model call, and says how the call ended when it gives the place back.
 */
import type { ModelSlotReport } from '../../shared/model-slots.ts';
import { ModelFailure, type ModelFinish } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import { errorReason } from './end-reason.ts';
import type { ModelSlotLease } from './model-slots.ts';
import type { TurnScope } from './turn-scope.ts';

/** HTTP statuses by which servers say that they have too much to do; 529 is not registered, but in use. */
const overloadStatuses: ReadonlySet<number | undefined> = new Set([429, 503, 529]);

/**
 * Fulfils with `undefined` when the turn ended first. The wait belongs to the turn's time, not to the model's silence.
 *
 * @throws ServerError LOG_WRITE_FAILED, or what the slots throw; nothing is held then
 */
export async function takePlace(context: AgentContext, scope: TurnScope, step: number): Promise<ModelSlotLease | undefined> {
  const lease = await context.modelSlots.acquire(scope.options.priority ?? 0, scope.signal);
  if (lease === undefined) {
    // Only an ended turn gets none, so this is a fault where the turn goes on.
    scope.end(errorReason(undefined));
    return undefined;
  }
  try {
    if (lease.position > 0) await logWait(scope, step, lease);
    if (!scope.ended) return lease;
  } catch (error) {
    lease.release({ outcome: 'other' });
    throw error;
  }
  lease.release({ outcome: 'other' });
  return undefined;
}

/** What the limiter has to know of a call's end. */
export function slotReport(settled: ModelFinish | Error): ModelSlotReport {
  if (!(settled instanceof Error)) return { outcome: 'ok' };
  if (!(settled instanceof ModelFailure)) return { outcome: 'other' };
  const { code, status, retryAfterMs } = settled;
  const overloaded = code === 'RATE_LIMIT' || (code === 'SERVER' && overloadStatuses.has(status));
  if (!overloaded) return { outcome: 'other' };
  return retryAfterMs === undefined ? { outcome: 'overloaded' } : { outcome: 'overloaded', retryAfterMs };
}

async function logWait(scope: TurnScope, step: number, { position, waitedMs }: ModelSlotLease): Promise<void> {
  scope.record({ type: 'llm/wait', data: { turn: scope.turn, step, position, waitedMs: Math.round(waitedMs) } });
  await scope.barrier();
  // Others have spent while this call waited.
  scope.endSpentInStep();
}
