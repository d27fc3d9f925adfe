/**
 * What subagents say they used, checked and added up. Their words come from other programs, so what is no count is taken
 * as nothing.
 */
import type { Prices } from '../../shared/session-options.ts';
import type { SubagentUsage } from '../../shared/subagent-protocol.ts';
import { costOf, exactUsd } from './cost.ts';

/** The usage of one run, fit to be added up. A run that names no cost costs what the session's own tokens do. */
export function checkedSubagentUsage(usage: SubagentUsage, prices: Prices | undefined): SubagentUsage {
  const tokens = {
    inputTokens: count(usage.inputTokens),
    outputTokens: count(usage.outputTokens),
    cacheReadTokens: count(usage.cacheReadTokens),
    reasoningTokens: count(usage.reasoningTokens),
  };
  if (usage.costUsd !== undefined) return { ...tokens, costUsd: amount(usage.costUsd) };
  return prices === undefined ? tokens : { ...tokens, costUsd: costOf(prices, tokens) };
}

/** Both together; `costUsd` is there when either has one. */
export function addSubagentUsage(a: SubagentUsage | undefined, b: SubagentUsage): SubagentUsage {
  if (a === undefined) return b;
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    ...(a.costUsd === undefined && b.costUsd === undefined ? {} : { costUsd: exactUsd((a.costUsd ?? 0) + (b.costUsd ?? 0)) }),
  };
}

function count(value: number): number {
  return Math.floor(amount(value));
}

function amount(value: number): number {
  return Number.isFinite(value) && value > 0 ? value : 0;
}
