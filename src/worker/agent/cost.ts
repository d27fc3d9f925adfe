/**
 * What tokens cost. Money is a plain number of US dollars, kept exact enough to be added up for ever.
 */
import type { TokenUsage } from '../../shared/events.ts';
import type { TokenPrices } from '../../shared/session-options.ts';

/** Prices are per this many tokens. */
const priced = 1_000_000;
const grain = 1e12;

/** US dollars for these tokens. Reasoning is part of the output. */
export function costOf(prices: TokenPrices, tokens: Omit<TokenUsage, 'reasoningTokens'>): number {
  const { inputTokens, outputTokens, cacheReadTokens } = tokens;
  return exactUsd((inputTokens * prices.input + outputTokens * prices.output + cacheReadTokens * prices.cacheRead) / priced);
}

/**
 * The nearest whole number of 1e-12 dollars. Sums that go through here do not drift, however many there are: the error of
 * one addition is far smaller than that and is gone before the next.
 */
export function exactUsd(usd: number): number {
  return Math.round(usd * grain) / grain;
}
