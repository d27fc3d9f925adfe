/** Results as a full run would leave them, made up: for what reads and draws them. */
import type { ClassRecord, RecordedPart, Results } from '../../../bench/guard/record.ts';
import { noResults } from '../../../bench/guard/record.ts';
import type { Figure, GrowthCurve, LatencyRow, PeerRow } from '../../../bench/run.ts';

export const sampleMachine = {
  cores: 2,
  cpu: 'Intel(R) Xeon(R) Processor',
  memoryGb: 24,
  system: 'Linux 6.18',
  node: 'v20.20.2',
} as const;

export function samplePart(name: string, results: Partial<Results>, change: Partial<RecordedPart> = {}): RecordedPart {
  const run = { at: '2026-11-30T12:00:00.000Z', commit: 'abc1234', full: true, seed: 1, busyBefore: 1, busyAfter: 2 };
  return { name, ...run, ...change, results: { ...noResults(), ...results } };
}

export function sampleFigure(what: string, toFloor: number, range?: readonly [number, number], target = '–'): Figure {
  return {
    what,
    target,
    measured: (toFloor * 100).toFixed(0),
    toFloor,
    ...(range === undefined ? {} : { toFloorRange: range }),
    values: { toFloor },
  };
}

function latencyRows(): LatencyRow[] {
  const rates = [1000, 2000, 5000, 10_000, 20_000, 50_000];
  const agents = [
    { agent: 'ours, shared', loop: 'closed', factor: 1.6 },
    { agent: 'floor', loop: 'closed', factor: 1 },
    { agent: 'ours, shared', loop: 'open', factor: 1.8 },
    { agent: 'floor', loop: 'open', factor: 1.1 },
  ] as const;
  return agents.flatMap(({ agent, loop, factor }) =>
    rates.map((rate) => {
      const p50 = factor * 0.25 * (1 + (rate / 30_000) ** 2);
      return { agent, sessions: 200, rate, loop, p50, p95: p50 * 3, p99: p50 * 9, max: p50 * 30 };
    }),
  );
}

function curve(what: string, exponent: number, most: number): GrowthCurve {
  const points = [1, 10, 100, 1000, 10_000].map((size) => {
    const cost = 3 * size ** exponent;
    return { size, cost, low: cost * 0.9, high: cost * 1.2 };
  });
  return { what, unit: 'ms', over: 'open sessions', points, exponent, most };
}

function peer(agent: string, times: number): PeerRow {
  return {
    agent,
    version: agent === 'ours' ? '0.1.0' : '1.2.3',
    runtime: 'Node 24',
    sessions: 200,
    tokens: 200,
    delayMs: 5,
    initializeMs: [100 * times, 110 * times, 90 * times],
    newSessionMs: { p50: times, p99: 3 * times },
    pssMb: { idle: 50 * times, open: 60 * times, after: 120 * times },
    processes: 1,
    coldMs: 1500 * times,
    totalMs: [1100 * times, 1000 * times, 1300 * times],
    cpuUsPerToken: [20 * times, 22 * times, 19 * times],
    firstTokenMs: { p50: 100 * times, p99: 140 * times },
    exitMs: 100,
    toOurs: { total: times, cpu: times * 1.2, memory: times * 0.8, firstToken: times * 2, initialize: times },
    wrong: 0,
  };
}

/** Each kind of results is there. */
export function sampleRecord(): ClassRecord {
  const parts = [
    samplePart('targets', {
      figures: [
        sampleFigure('200 sessions × 200, shared, 5 ms: total ms', 1.04, [1.02, 1.08], '≤ 1.05 × floor'),
        sampleFigure('200 sessions × 200, shared, as fast as it comes: total ms', 0.78, [0.7, 0.9], '≤ 0.8 × floor'),
        sampleFigure('a turn of one token, 200 at once, shared: CPU µs', 9.7, [9.1, 10.6]),
        { what: 'stub <source> & pipe: k frames/s', target: '≥ 400', measured: '604', holds: true, values: { k: 604 } },
        { what: 'attach to a spare thread: p50 / p99 ms', target: '≤ 5 / –', measured: '16.2 / 20.0', holds: false, values: { p50: 16 } },
      ],
    }),
    samplePart('rates', { latencies: latencyRows() }, { busyBefore: 33 }),
    samplePart('growth-sessions', {
      growth: [curve('session/new', 0.04, 0.1), curve('memory of idle open sessions', 0.97, 1.1), curve('_status', 1.4, 1.1)],
    }),
    samplePart('peers', {
      peers: [peer('ours', 1), peer('floor', 0.6), peer('opencode', 24), peer('gemini-cli', 3.2), peer('codex-acp', 12)],
      skipped: [{ agent: 'pi-acp', why: 'not run with 200 sessions: 50 take gigabytes' }],
    }),
    samplePart('micro', { micros: [{ group: 'log', what: 'append', nanoseconds: [1200, 1300, 1250], unit: 'event', bytes: 200 }] }),
  ];
  return { machine: sampleMachine, parts };
}
