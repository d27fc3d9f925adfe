/**
 * What models cost, as far as their provider has published it: a list with a date, since prices change and a list does not.
 *
 * Only what is known stands here. A model that is not listed has no price, and then no cost is counted.
 */
import type { TokenPrices } from '../session-options.ts';

export interface ListedPrices {
  /** The name that requests carry. */
  readonly model: string;
  /** Further names under which the provider serves the same model. */
  readonly aliases?: readonly string[];
  readonly peak: TokenPrices;
  readonly offPeak: TokenPrices;
}

/** US dollars per million tokens. `date` is the day on which the source was read. */
export const priceTable: {
  readonly date: string;
  readonly source: string;
  readonly models: readonly ListedPrices[];
} = {
  date: '2026-11-15',
  source: 'the price page of the DeepSeek API documentation',
  models: [
    {
      model: 'deepseek-flash',
      aliases: ['deepseek-v4-flash', 'deepseek-v4-flash-vision-exp'],
      peak: { input: 0.3, output: 1.2, cacheRead: 0.006 },
      offPeak: { input: 0.15, output: 0.6, cacheRead: 0.003 },
    },
    {
      model: 'deepseek-v4-pro',
      peak: { input: 1.32, output: 3.96, cacheRead: 0.044 },
      offPeak: { input: 0.66, output: 1.98, cacheRead: 0.022 },
    },
  ],
};

/** The listed prices of a model by any of its names; `undefined` when it is not listed. */
export function listedPrices(model: string): ListedPrices | undefined {
  return priceTable.models.find((listed) => listed.model === model || listed.aliases?.includes(model) === true);
}
