/**
 * What the tokens of a model cost here: the list of prices that comes with this program, with the user's own over it,
 * member by member; and the words that say which of them holds.
 */
import type { ModelConfig } from '../../shared/config.ts';
import { peakHoursText } from '../../shared/prices/price-hours.ts';
import { type ListedPrices, listedPrices, priceTable } from '../../shared/prices/price-table.ts';
import type { Prices, TokenPrices } from '../../shared/session-options.ts';
import type { Settings } from './schema.ts';

export interface PriceChoice {
  /** `undefined` when nobody said what the tokens cost: then no cost is counted. */
  readonly prices: Prices | undefined;
  /** Which prices hold, and of which day, in one line for people. */
  readonly why: string;
}

type PriceSettings = Pick<Settings, 'price_input' | 'price_output' | 'price_cache_read'>;

export function choosePrices(settings: PriceSettings, model: ModelConfig): PriceChoice {
  const own = ownPrices(settings);
  const listed = knownPrices(model);
  if (listed === undefined) return unlisted(own, model);
  const { peak, offPeak } = listed;
  const from = `${priceTable.source}, read ${priceTable.date}`;
  if (Object.keys(own).length === 0) {
    return { prices: { ...peak, offPeak }, why: `listed for ${listed.model} (${from}); peak is ${peakHoursText}` };
  }
  // Only what nobody set hangs on the hour.
  const prices = { ...peak, ...own, offPeak: { ...offPeak, ...own } };
  const isAllOwn = own.input !== undefined && own.output !== undefined && own.cacheRead !== undefined;
  return isAllOwn ? { prices: { ...peak, ...own }, why: 'configured' } : { prices, why: `configured, the rest as listed (${from})` };
}

/** What holds at the dearest hour, as settings. */
export function priceSettings({ prices }: PriceChoice): PriceSettings {
  return prices === undefined ? {} : { price_input: prices.input, price_output: prices.output, price_cache_read: prices.cacheRead };
}

/** The list's, for a model that DeepSeek serves. @returns undefined for every other */
export function knownPrices(model: ModelConfig): ListedPrices | undefined {
  return model.kind === 'openai-compatible' && model.dialect === 'deepseek' ? listedPrices(model.model) : undefined;
}

function unlisted(own: Partial<TokenPrices>, model: ModelConfig): PriceChoice {
  if (Object.keys(own).length > 0) {
    const { input = 0, output = 0, cacheRead = input } = own;
    return { prices: { input, output, cacheRead }, why: 'configured' };
  }
  if (model.kind !== 'openai-compatible') return { prices: undefined, why: 'none: the model runs in this process' };
  return { prices: undefined, why: `none known for ${model.model}: set price_input and price_output to have costs counted` };
}

function ownPrices({ price_input: input, price_output: output, price_cache_read: cacheRead }: PriceSettings): Partial<TokenPrices> {
  return {
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    ...(cacheRead === undefined ? {} : { cacheRead }),
  };
}
