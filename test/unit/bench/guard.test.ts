/** What the guard takes for a change, and what it keeps. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { compareRuns, comparisonText } from '../../../bench/guard/compare-runs.ts';
import { machineClass } from '../../../bench/guard/machine-class.ts';
import { figureName, floorRatios, rowRatios } from '../../../bench/guard/ratios.ts';
import { mergeParts, parseRecord, readParts, recordParts, recordText } from '../../../bench/guard/record.ts';
import type { LoadRow } from '../../../bench/load/compare.ts';
import { medianInterval, ratioRange } from '../../../bench/load/statistics.ts';
import { sampleFigure, sampleMachine, samplePart, sampleRecord } from './sample-results.ts';

const before = (ratio: number, range?: readonly [number, number]) => [
  samplePart('targets', { figures: [sampleFigure('total', ratio, range)] }),
];

t.test('the median lies between order statistics: all of few values, ever less of the tails of many', async (t) => {
  t.same(medianInterval([3, 1, 2, 5, 4]), [1, 5]);
  const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
  // P(at most one of eight below the median) = 9/256, on either side.
  t.same(medianInterval(upTo(8)), [2, 7]);
  t.same(medianInterval(upTo(15)), [4, 12]);
  t.same(medianInterval(upTo(20)), [6, 15]);
  t.same(medianInterval([7]), [7, 7]);
  t.same(ratioRange([2, 6, 4], [1, 2, 4]), [1, 3]);
});

t.test('a ratio that grew by more than a tenth, with ranges apart, is slower, and is told with both', async (t) => {
  const comparison = compareRuns(before(1.32, [1.28, 1.4]), before(1.1, [1.05, 1.15]));
  t.same(comparison.slower, [{ name: 'total', before: 1.1, now: 1.32 }]);
  t.equal(comparisonText(comparison, false)[0], '  slower: total 1.10 -> 1.32 × floor (+20 %)');
  const back = compareRuns(before(1.1, [1.05, 1.15]), before(1.32, [1.28, 1.4]));
  t.equal(comparisonText(back, false)[0], '  faster: total 1.32 -> 1.10 × floor (-17 %)');
});

t.test('noise decides nothing: ranges that touch, changes below a tenth, and without ranges changes below three tenths', async (t) => {
  t.equal(compareRuns(before(1.5, [1.2, 1.9]), before(1.1, [1, 1.3])).alike, 1);
  t.equal(compareRuns(before(1.19, [1.185, 1.195]), before(1.1, [1.09, 1.11])).alike, 1);
  t.equal(compareRuns(before(1.4), before(1.1)).alike, 1);
  t.equal(compareRuns(before(1.4, [1.39, 1.41]), before(1.1)).alike, 1);
  t.equal(compareRuns(before(1.5), before(1.1)).slower.length, 1);
});

t.test('a machine that is slow for ours as for the floor changes nothing', async (t) => {
  const rows = (factor: number): LoadRow[] => ['floor', 'shared'].map((target) => loadRow(target, factor * (target === 'floor' ? 1 : 1.2)));
  const comparison = compareRuns([samplePart('floor', { rows: rows(3) })], [samplePart('floor', { rows: rows(1) })]);
  t.match(comparison, { slower: [], faster: [], alike: 2, unknown: 0 });
});

t.test('what no record has is counted, and what has no floor is a note at most', async (t) => {
  const figure = (value: number) => ({ what: 'exit (5 tries): ms', target: '–', measured: String(value), values: { ms: value } });
  const run = [samplePart('teardown', { figures: [figure(300), sampleFigure('new', 2)] })];
  const comparison = compareRuns(run, [samplePart('teardown', { figures: [figure(200)] })]);
  t.match(comparison, { slower: [], unknown: 1, notes: ['exit: ms: 200 -> 300'] });
  t.notMatch(comparisonText(comparison, false).join('\n'), /note/);
  t.match(comparisonText(comparison, true).join('\n'), /note, not against a floor: exit: ms: 200 -> 300/);
});

t.test('of what was recorded twice the later counts', async (t) => {
  const recorded = [...before(1.1, [1, 1.2]), ...before(2, [1.9, 2.1])];
  t.match(compareRuns(before(2, [1.9, 2.1]), recorded), { slower: [], faster: [], alike: 1 });
});

t.test('a steeper curve is noted with its limit, also when it had no exponent before', async (t) => {
  const curve = (exponent: number) => ({ what: 'list', unit: 'ms', over: 'sessions', points: [], exponent, most: 1.1 });
  const notes = (now: number, then: number) =>
    compareRuns([samplePart('growth', { growth: [curve(now)] })], [samplePart('growth', { growth: [curve(then)] })]).notes;
  t.same(notes(1.4, 1), ['growth of list over sessions: exponent 1.00 -> 1.40, more than 1.1']);
  t.same(notes(1.05, 1), []);
  t.same(notes(1.4, Number.NaN), []);
});

t.test('names and ranges of ratios: measured numbers in brackets are no part of a name; a printed spread serves as a range', async (t) => {
  t.equal(figureName({ what: 'start → answered, ms (floor 52, bare node 37)' }), 'start → answered, ms');
  t.equal(figureName({ what: 'attach to a new thread (cold): p50 / p99 ms' }), 'attach to a new thread (cold): p50 / p99 ms');
  const figure = { what: 'x', target: '–', measured: '143 (108–153)', toFloor: 2.75, values: {} };
  const [ratio] = floorRatios(samplePart('startup', { figures: [figure] }));
  t.match(ratio, { name: 'x', ratio: 2.75 });
  t.ok(Math.abs(ratio!.low! - (2.75 * 108) / 143) < 1e-9 && Math.abs(ratio!.high! - (2.75 * 153) / 143) < 1e-9);
});

t.test('rows of load are paired with the floor before them, and stand back where figures tell the same', async (t) => {
  const rows = [loadRow('floor', 1), loadRow('shared', 2), loadRow('floor', 100)];
  t.same(
    rowRatios(rows[1]!, rows).map(({ name, ratio }) => [name, ratio]),
    [
      ['shared, 10 sessions × 200, 5 ms: total', 2],
      ['shared, 10 sessions × 200, 5 ms: CPU per token', 2],
    ],
  );
  t.equal(floorRatios(samplePart('targets', { rows, figures: [sampleFigure('total', 2)] })).length, 1);
});

t.test('machines are of one class by cores, processor and major version of Node', async (t) => {
  t.equal(machineClass(sampleMachine), '2-cores-node20-intel-xeon');
  t.equal(machineClass({ ...sampleMachine, node: 'v20.9.0' }), machineClass(sampleMachine));
  t.equal(machineClass({ cores: 8, cpu: 'AMD EPYC 7763 64-Core Processor', node: 'v22.1.0' }), '8-cores-node22-amd-epyc-7763-64-core');
});

t.test('a record comes back as it was written, with four digits, and NaN where a number was none', async (t) => {
  const figure = { ...sampleFigure('total', 1.234567), values: { long: 123_456.789 } };
  const growth = [{ what: 'list', unit: 'ms', over: 'sessions', points: [], exponent: Number.NaN, most: 1.1 }];
  const record = { machine: sampleMachine, parts: [samplePart('targets', { figures: [figure], growth }, { seed: 123_456_789 })] };
  const text = recordText(record);
  const back = parseRecord(text)!;
  t.match(back.parts[0], {
    name: 'targets',
    seed: 123_456_789,
    results: { figures: [{ toFloor: 1.235, values: { long: 123_500 } }], rows: [] },
  });
  t.ok(Number.isNaN(back.parts[0]!.results.growth[0]!.exponent));
  t.equal(recordText(back), text);
  t.ok(recordText(sampleRecord()).length < 60_000);
});

t.test('parts are merged by name; a short run leaves the record of a full one', async (t) => {
  const old = { machine: sampleMachine, parts: [...before(1), samplePart('stub', {}, { full: false })] };
  const merged = mergeParts(old, sampleMachine, [
    samplePart('targets', {}, { full: false, commit: 'new' }),
    samplePart('stub', {}, { full: false, commit: 'new' }),
    samplePart('attach', {}, { commit: 'new' }),
  ]);
  t.same(merged.refused, ['targets']);
  t.same(
    merged.record.parts.map(({ name, commit }) => [name, commit]),
    [
      ['attach', 'new'],
      ['stub', 'new'],
      ['targets', 'abc1234'],
    ],
  );
});

t.test('recording keeps what other parts had, and what --json wrote is read as well', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-record-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const machine = { ...sampleMachine, commit: 'def5678' };
  const json = {
    machine,
    at: '2026-11-29T00:00:00.000Z',
    busyBefore: 1,
    busyAfter: 0,
    figures: [sampleFigure('old', 3)],
    rows: [],
    faults: [],
  };
  writeFileSync(join(folder, 'old.json'), JSON.stringify(json));
  writeFileSync(join(folder, 'other.json'), JSON.stringify({ something: 'else' }));
  recordParts(folder, machine, before(1.1));
  const { file } = recordParts(folder, machine, [samplePart('stub', {})]);
  t.equal(file, join(folder, '2-cores-node20-intel-xeon.json'));
  t.notMatch(readFileSync(file, 'utf8'), /def5678/, 'the commit stands with each part');
  t.same(
    readParts(folder, machine).map(({ name, commit }) => [name, commit]),
    [
      ['run', 'def5678'],
      ['stub', 'abc1234'],
      ['targets', 'abc1234'],
    ],
  );
  t.same(readParts(folder, { ...machine, cores: 4 }), []);
});

function loadRow(target: string, factor: number): LoadRow {
  const split = { total: 1, main: 1, threads: 0, pool: 0, v8: 0, other: 0 };
  return {
    target,
    sessions: 10,
    tokens: 200,
    delayMs: 5,
    totalMs: [100 * factor, 110 * factor, 105 * factor],
    cpuUsPerToken: [10 * factor, 11 * factor, 12 * factor],
    splitUs: split,
    firstTokenMs: { p50: 1, p99: 2 },
    newSessionMs: { p50: 1, p99: 2 },
    pssMb: { idle: 10, open: 11, after: 12 },
    wrong: 0,
  };
}
