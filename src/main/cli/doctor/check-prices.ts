/** Which prices hold, and of which day: a cost is only as true as they are. */
import type { PriceChoice } from '../../config/prices.ts';
import type { TokenPrices } from '../../../shared/session-options.ts';
import { type Finding, ok } from './finding.ts';

export function checkPrices({ prices, why }: PriceChoice): Finding {
  if (prices === undefined) return ok('prices', why);
  const offPeak = prices.offPeak === undefined ? '' : `, off-peak ${amounts(prices.offPeak)}`;
  return ok('prices', `$ per million tokens: ${amounts(prices)}${offPeak}; ${why}`);
}

function amounts({ input, output, cacheRead }: TokenPrices): string {
  return `${input} in, ${output} out, ${cacheRead} from cache`;
}
