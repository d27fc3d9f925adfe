/** The list of prices, its hours, and the settings that go over it. */
import * as fc from 'fast-check';
import t from 'tap';
import type { ModelConfig } from '../../../../src/shared/config.ts';
import { isPeak, pricesAt } from '../../../../src/shared/prices/price-hours.ts';
import { listedPrices, priceTable } from '../../../../src/shared/prices/price-table.ts';
import { choosePrices } from '../../../../src/main/config/prices.ts';
import { SessionLedger } from '../../../../src/worker/agent/session-ledger.ts';

const model = (name: string, dialect: 'deepseek' | 'generic' = 'deepseek') =>
  ({ kind: 'openai-compatible', dialect, model: name }) as unknown as ModelConfig;
const at = (text: string): number => Date.parse(text);

t.test('every entry of the list is whole, dated, and dearest at the peak', async (t) => {
  t.match(priceTable.date, /^\d{4}-\d{2}-\d{2}$/);
  t.ok(at(priceTable.date) < Date.now(), 'nobody reads a page in the future');
  const names = priceTable.models.flatMap(({ model: name, aliases = [] }) => [name, ...aliases]);
  t.equal(new Set(names).size, names.length, 'no name stands twice');
  for (const { model: name, peak, offPeak } of priceTable.models) {
    for (const kind of ['input', 'output', 'cacheRead'] as const) {
      t.ok(offPeak[kind] > 0 && offPeak[kind] <= peak[kind], `${name} ${kind}`);
    }
    t.ok(peak.cacheRead < peak.input && peak.input < peak.output, name);
  }
  t.equal(listedPrices('deepseek-v4-flash'), listedPrices('deepseek-flash'));
  t.equal(listedPrices('gpt-9'), undefined);
});

t.test('the peak is Monday to Friday, 01 to 04 and 06 to 10 UTC', async (t) => {
  for (const time of ['2026-11-30T01:00:00Z', '2026-11-30T03:59:59Z', '2026-12-04T06:00:00Z', '2026-12-04T09:59:59.999Z']) {
    t.ok(isPeak(at(time)), time);
  }
  for (const time of [
    '2026-11-30T00:59:59.999Z',
    '2026-11-30T04:00:00Z',
    '2026-11-30T05:59:59Z',
    '2026-11-30T10:00:00Z',
    '2026-11-29T02:00:00Z',
  ]) {
    t.notOk(isPeak(at(time)), time);
  }
  const week = 7 * 24;
  const hours = Array.from({ length: week }, (_, hour) => isPeak(at('2026-11-30T00:30:00Z') + hour * 3_600_000));
  t.equal(hours.filter(Boolean).length, 5 * 7);
});

t.test('a call costs what its hour costs, and the dearer where it crosses a change', async (t) => {
  const prices = { input: 2, output: 4, cacheRead: 1, offPeak: { input: 1, output: 2, cacheRead: 0.5 } };
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 0, max: 3e7 }), (from, takes) => {
      const dear = isPeak(from) || isPeak(from + takes);
      return pricesAt(prices, from, from + takes) === (dear ? prices : prices.offPeak);
    }),
  );
  const { offPeak: _, ...flat } = prices;
  t.equal(pricesAt(flat, at('2026-11-29T02:00:00Z')), flat, 'a price without hours holds always');

  let clock = at('2026-11-30T03:30:00Z');
  const ledger = new SessionLedger(() => 0, { prices: () => prices, wallClock: () => clock });
  const meter = ledger.openTurn();
  const million = { inputTokens: 1e6, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0 };
  meter.addModelCall(million, { inputTokens: 0, outputTokens: 0 });
  const began = clock;
  clock = at('2026-11-30T04:30:00Z');
  meter.addModelCall(million, { inputTokens: 0, outputTokens: 0 }, began);
  meter.addModelCall(million, { inputTokens: 0, outputTokens: 0 });
  meter.addModelCall(undefined, { inputTokens: 1e6, outputTokens: 1e6 });
  t.equal(meter.total().costUsd, 2 + 2 + 1 + 3);
});

t.test('prices of the user go over the list one by one, and stand alone where nothing is listed', async (t) => {
  const listed = choosePrices({}, model('deepseek-flash'));
  t.match(listed.prices, { input: 0.3, output: 1.2, cacheRead: 0.006, offPeak: { input: 0.15, output: 0.6, cacheRead: 0.003 } });
  t.match(listed.why, new RegExp(`listed for deepseek-flash.*${priceTable.date}`));
  const one = choosePrices({ price_output: 9 }, model('deepseek-flash'));
  t.same(one.prices, { input: 0.3, output: 9, cacheRead: 0.006, offPeak: { input: 0.15, output: 9, cacheRead: 0.003 } });
  t.match(one.why, /^configured, the rest as listed/);
  const all = choosePrices({ price_input: 1, price_output: 2, price_cache_read: 0 }, model('deepseek-flash'));
  t.same(all, { prices: { input: 1, output: 2, cacheRead: 0 }, why: 'configured' });
  t.same(choosePrices({ price_input: 1 }, model('x', 'generic')).prices, { input: 1, output: 0, cacheRead: 1 });
  t.same(choosePrices({}, model('deepseek-flash', 'generic')).prices, undefined, 'another server with a model of that name');
  t.match(choosePrices({}, model('qwen3')), { prices: undefined, why: /none known for qwen3/ });
  t.match(choosePrices({}, { kind: 'scripted', paceMs: 0 }), { prices: undefined, why: /in this process/ });
});
