/**
 * A provider's token counts as our disjoint buckets. Providers count cache hits inside the prompt and reasoning inside the completion.
 */
import type { TokenUsage } from '../../shared/events.ts';

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Counts that are missing or absurd are taken as 0, and a cache hit larger than the prompt as the whole prompt. */
export function toTokenUsage(raw: object): TokenUsage {
  const usage = fieldsOf(raw);
  const prompt = countOf(usage['prompt_tokens']) ?? 0;
  const details = fieldsOf(usage['prompt_tokens_details']);
  const hits = countOf(details['cached_tokens']) ?? countOf(usage['prompt_cache_hit_tokens']) ?? 0;
  const cacheReadTokens = Math.min(hits, prompt);
  const outputTokens = countOf(usage['completion_tokens']) ?? 0;
  const reasoning = countOf(fieldsOf(usage['completion_tokens_details'])['reasoning_tokens']) ?? 0;
  return { inputTokens: prompt - cacheReadTokens, outputTokens, cacheReadTokens, reasoningTokens: Math.min(reasoning, outputTokens) };
}
