/** ACP's stop reasons as a run's. Pure. A reason that is not known is no success. */
import type { SubagentStopReason } from '../../../shared/subagent-protocol.ts';
import { metaKey, record } from './child-traits.ts';

export interface RunStop {
  readonly stopReason: SubagentStopReason;
  readonly diagnostic?: string;
}

const known: Readonly<Record<string, SubagentStopReason>> = {
  end_turn: 'completed',
  max_tokens: 'max-tokens',
  refusal: 'refusal',
  cancelled: 'aborted',
};

/** `response` is what the child answered to its prompt, unchecked. */
export function stopReasonOf(response: unknown): RunStop {
  const reason = record(response)['stopReason'];
  if (typeof reason !== 'string') return { stopReason: 'error', diagnostic: 'the subagent answered without a stop reason' };
  const stopReason = Object.hasOwn(known, reason) ? known[reason] : undefined;
  if (stopReason !== undefined) return { stopReason };
  return { stopReason: 'error', diagnostic: `the subagent stopped for the reason ${reason.slice(0, 200)}${spentBudget(response)}` };
}

/** Which budget was spent, where the child says so. */
function spentBudget(response: unknown): string {
  const { budget } = record(record(record(record(response)['_meta'])[metaKey])['spent']);
  return typeof budget === 'string' ? `: its budget of ${budget.slice(0, 100)} is spent` : '';
}
