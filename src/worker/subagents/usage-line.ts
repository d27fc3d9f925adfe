/** What a run has used, as one line for people. Pure. */
import type { JsonValue } from '../../shared/errors.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';

/** Input with cache reads, output, and the cost where it is known: `Used 12,345 tokens in, 678 out, $0.0123`. */
export function usageLine({ inputTokens, cacheReadTokens, outputTokens, costUsd }: SubagentUsage): string {
  const cost = costUsd === undefined ? '' : `, $${costUsd.toFixed(4)}`;
  return `Used ${grouped(inputTokens + cacheReadTokens)} tokens in, ${grouped(outputTokens)} out${cost}`;
}

/** The line for the `usage` of a stored outcome's meta; none for anything that is not what {@link SubagentUsage} says. */
export function storedUsageLine(usage: JsonValue | undefined): string[] {
  if (typeof usage !== 'object' || usage === null || Array.isArray(usage)) return [];
  const { inputTokens, cacheReadTokens, outputTokens, reasoningTokens, costUsd } = usage;
  if (!isCount(inputTokens) || !isCount(cacheReadTokens) || !isCount(outputTokens) || !isCount(reasoningTokens)) return [];
  return [usageLine({ inputTokens, cacheReadTokens, outputTokens, reasoningTokens, ...(isCount(costUsd) ? { costUsd } : {}) })];
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number';
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
