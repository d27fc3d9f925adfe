/**
 * What a child's answer, or an update, says of tokens and money. Pure. Two forms are known: ours (`_meta["dsh-acp"].usage`), and the one
 * that ACP is about to get, whose input includes what came from a cache.
 */
import type { SubagentUsage } from '../../../shared/subagent-protocol.ts';
import { isRecord, metaKey, record } from './child-traits.ts';

/** `undefined` when the answer says nothing that could be counted. */
export function readUsage(response: unknown): SubagentUsage | undefined {
  const answer = record(response);
  const ours = record(record(answer['_meta'])[metaKey])['usage'];
  if (isRecord(ours)) return readOurs(ours);
  return isRecord(answer['usage']) ? readPlain(answer['usage']) : undefined;
}

/** What a failed turn has used: our own form, in the data of the error. */
export function readErrorUsage(error: unknown): SubagentUsage | undefined {
  const usage = record(record(error)['data'])['usage'];
  return isRecord(usage) ? readOurs(usage) : undefined;
}

function readOurs(usage: Readonly<Record<string, unknown>>): SubagentUsage {
  const { costUsd } = usage;
  const own = {
    inputTokens: count(usage['inputTokens']),
    outputTokens: count(usage['outputTokens']),
    cacheReadTokens: count(usage['cacheReadTokens']),
    reasoningTokens: count(usage['reasoningTokens']),
    ...(isAmount(costUsd) ? { costUsd } : {}),
  };
  return isRecord(usage['subagents']) ? sumOf(own, readOurs(usage['subagents']), isAmount(costUsd)) : own;
}

/** What the child's own children used is the parent's to pay for, too; the cost includes them already where there is one. */
function sumOf(own: SubagentUsage, below: SubagentUsage, costIncludes: boolean): SubagentUsage {
  const costUsd = costIncludes ? own.costUsd : below.costUsd;
  return {
    inputTokens: own.inputTokens + below.inputTokens,
    outputTokens: own.outputTokens + below.outputTokens,
    cacheReadTokens: own.cacheReadTokens + below.cacheReadTokens,
    reasoningTokens: own.reasoningTokens + below.reasoningTokens,
    ...(costUsd === undefined ? {} : { costUsd }),
  };
}

function readPlain(usage: Readonly<Record<string, unknown>>): SubagentUsage {
  return {
    inputTokens: count(usage['inputTokens']),
    outputTokens: count(usage['outputTokens']),
    cacheReadTokens: count(usage['cachedReadTokens']),
    reasoningTokens: count(usage['thoughtTokens']),
  };
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
