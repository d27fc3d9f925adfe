/**
 * The limits of one turn. Asked before every model call; the wall time also has a timer, since a step can hang.
 */
import type { TurnBudget } from '../../shared/config.ts';
import type { TurnEndReason } from '../../shared/events.ts';
import type { UsageMeter } from './turn-usage.ts';

/** The reason to end the turn instead of calling the model again. `0` in a budget means no limit. */
export function spentBudget(budget: TurnBudget, usage: UsageMeter): TurnEndReason | undefined {
  if (reached(usage.steps, budget.maxSteps)) return { kind: 'max-turn-requests', budget: 'steps' };
  if (reached(usage.toolCalls, budget.maxToolCalls)) return { kind: 'max-turn-requests', budget: 'tool-calls' };
  if (reached(usage.elapsedMs, budget.maxWallMs)) return { kind: 'max-turn-requests', budget: 'wall-time' };
  if (reached(usage.spentTokens, budget.maxTokens)) return { kind: 'max-tokens' };
  return undefined;
}

/** Whether the step about to start is the last one the turn may take, and not its only one. */
export function isLastStep(budget: TurnBudget, usage: UsageMeter): boolean {
  return budget.maxSteps > 1 && usage.steps === budget.maxSteps - 1;
}

/** How many more tool calls may be dispatched. */
export function toolCallsLeft(budget: TurnBudget, usage: UsageMeter): number {
  return budget.maxToolCalls === 0 ? Number.POSITIVE_INFINITY : Math.max(0, budget.maxToolCalls - usage.toolCalls);
}

/** The cap that the token budget puts on the next answer; `undefined` without one. */
export function outputTokensLeft(budget: TurnBudget, usage: UsageMeter): number | undefined {
  return budget.maxTokens === 0 ? undefined : Math.max(1, budget.maxTokens - usage.spentTokens);
}

function reached(used: number, limit: number): boolean {
  return limit > 0 && used >= limit;
}
