/** The models that a client may choose beside the configured one, and what their tokens cost. */
import type { OfferedModel } from '../../shared/config.ts';
import type { Prices, TokenPrices } from '../../shared/session-options.ts';
import { choosePrices } from './prices.ts';
import type { Settings } from './schema.ts';
import type { ModelChoice } from './select-model.ts';

/**
 * The prices of the settings are those of the configured model; a further one costs what the list of prices says.
 *
 * A model whose prices nobody knows costs what the dearest of the others does: a budget in dollars must hold whatever a client
 * chooses, so a guess errs on the side of too much. Without any prices no cost is counted, as ever.
 */
export function offeredModels(settings: Settings, { model, models }: ModelChoice): readonly OfferedModel[] {
  if (model.kind !== 'openai-compatible') return [];
  const listed = models.map((name) => choosePrices({}, { ...model, model: name }).prices);
  const dearest = dearestOf([choosePrices(settings, model).prices, ...listed].filter((prices) => prices !== undefined));
  return models.map((name, index) => ({ name, prices: listed[index] ?? dearest }));
}

function dearestOf(all: readonly TokenPrices[]): Prices | undefined {
  if (all.length === 0) return undefined;
  return {
    input: Math.max(...all.map(({ input }) => input)),
    output: Math.max(...all.map(({ output }) => output)),
    cacheRead: Math.max(...all.map(({ cacheRead }) => cacheRead)),
  };
}
