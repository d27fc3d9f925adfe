/**
 * Which of a provider's prices holds at a given moment. Pure: the moment is always given.
 */
import type { Prices, TokenPrices } from '../session-options.ts';

/** DeepSeek's peak, Monday to Friday: from the first hour up to the second, UTC. */
const peakHours: readonly (readonly [number, number])[] = [
  [1, 4],
  [6, 10],
];

/** Said where prices are explained. */
export const peakHoursText = 'Monday to Friday, 01 to 04 and 06 to 10 UTC';

/**
 * Whether DeepSeek's peak price holds. Its price does not on Chinese holidays, which this program does not know: what it
 * counts then is too much, never too little.
 *
 * @param time epoch milliseconds
 */
export function isPeak(time: number): boolean {
  const date = new Date(time);
  const day = date.getUTCDay();
  const hour = date.getUTCHours();
  return day >= 1 && day <= 5 && peakHours.some(([from, to]) => hour >= from && hour < to);
}

/** The prices of a call that ran between two moments, in epoch milliseconds; the dearer ones where it crossed a change. */
export function pricesAt(prices: Prices, from: number, to: number = from): TokenPrices {
  return prices.offPeak === undefined || isPeak(from) || isPeak(to) ? prices : prices.offPeak;
}
