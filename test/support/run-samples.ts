/**
 * Results and events of batch runs that never took place, for tests of views and reports. Equal for equal numbers.
 */
import type { JobResult, JobStatus } from '../../src/main/run/job-result.ts';
import type { RunEvent, RunOutcome } from '../../src/main/run/run-event.ts';

/** 1 January 2026, noon UTC. */
export const sampleStart = Date.UTC(2026, 0, 1, 12);

export function sampleResult(overrides: Partial<JobResult> = {}): JobResult {
  return {
    version: 1,
    key: 'job',
    id: 'job',
    repeat: 0,
    seed: 0,
    status: 'passed',
    stopReason: 'end_turn',
    text: 'Done.',
    usage: { inputTokens: 1000, outputTokens: 200, cacheReadTokens: 500, reasoningTokens: 50, steps: 3, toolCalls: 4 },
    costUsd: 0.0123,
    times: {
      startedAt: new Date(sampleStart).toISOString(),
      endedAt: new Date(sampleStart + 12_300).toISOString(),
      setupMs: 300,
      turnsMs: 11_000,
      checkMs: 1000,
      totalMs: 12_300,
    },
    tries: 1,
    labels: {},
    ...overrides,
  };
}

/** A generator of numbers in [0, 1) that is the same for the same seed. */
export function sampleRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const statuses: readonly (readonly [JobStatus, number])[] = [
  ['passed', 0.58],
  ['failed', 0.8],
  ['completed', 0.86],
  ['error', 0.92],
  ['budget', 0.97],
  ['cancelled', 1],
];
const errors = [
  ['model', 'The model server answered 500 five times in a row.'],
  ['busy', 'The provider was overloaded for longer than the retries lasted.'],
  ['lost', 'The session thread ended under the job.'],
  ['setup', 'The setup command ended with exit 2: npm ERR! missing script: build'],
] as const;
const suites = ['parser', 'scheduler', 'billing', 'search'];

/** A result as a run of coding tasks might give it; every second job is run twice. */
export function variedResult(index: number, random: () => number): JobResult {
  const share = random();
  const status = statuses.find(([, upTo]) => share < upTo)?.[0] ?? 'passed';
  const id = `task-${String(Math.floor(index / 2) + 1).padStart(3, '0')}`;
  const repeat = index % 2;
  const turnsMs = Math.round(4000 * Math.exp(random() * 3.2));
  const startedAt = sampleStart + index * 1500;
  const output = Math.round(200 + random() * 6000);
  const input = Math.round(4000 + random() * 90_000);
  const [errorClass, error] = errors[Math.floor(random() * errors.length)] ?? errors[0];
  return sampleResult({
    key: repeat === 0 ? id : `${id}#2`,
    id,
    repeat,
    seed: repeat,
    status,
    stopReason: status === 'budget' ? 'max_turn_requests' : status === 'cancelled' ? 'cancelled' : 'end_turn',
    text: `I mended the fault in src/${id}.ts and ran the tests.`,
    usage: {
      inputTokens: input,
      outputTokens: output,
      cacheReadTokens: Math.round(input * 2.4),
      reasoningTokens: Math.round(output / 3),
      steps: 3 + Math.floor(random() * 20),
      toolCalls: 4 + Math.floor(random() * 30),
    },
    costUsd: (input * 0.27 + output * 1.1) / 1e6,
    times: {
      startedAt: new Date(startedAt).toISOString(),
      endedAt: new Date(startedAt + turnsMs + 1500).toISOString(),
      setupMs: 400,
      turnsMs,
      checkMs: 1100,
      totalMs: turnsMs + 1500,
    },
    tries: random() < 0.06 ? 2 : 1,
    labels: { suite: suites[index % suites.length] ?? '', difficulty: random() < 0.4 ? 'hard' : 'easy' },
    ...(status === 'error' ? { errorClass, error } : {}),
    ...(status === 'passed' || status === 'failed'
      ? {
          check: {
            exitCode: status === 'passed' ? 0 : 1,
            signal: null,
            timedOut: false,
            output:
              status === 'passed' ? 'ok 12 tests\n' : 'not ok 3 - counts the minimum itself\n# expected 4, got 3\n1 of 12 tests failed\n',
          },
        }
      : {}),
  });
}

/** The events of a run in which at most `concurrency` of the results are at work at once; ends behind the last result. */
export function eventsOf(results: readonly JobResult[], concurrency: number): RunEvent[] {
  const events: RunEvent[] = [
    { type: 'run/start', time: sampleStart, total: results.length, done: 0, concurrency, agent: 'dsh-acp 0.1.0' },
  ];
  const free = new Float64Array(concurrency).fill(sampleStart);
  for (const result of results) {
    const place = free.indexOf(Math.min(...free));
    const from = free[place]!;
    const to = from + result.times.totalMs;
    free[place] = to;
    const { key, usage, costUsd } = result;
    const turnEnd = to - result.times.checkMs;
    events.push(
      { type: 'job/state', time: from, key, state: 'preparing' },
      { type: 'job/state', time: from + result.times.setupMs, key, state: 'running' },
      {
        type: 'job/turn',
        time: turnEnd,
        key,
        turn: 1,
        ...(usage === undefined ? {} : { usage }),
        ...(costUsd === undefined ? {} : { costUsd }),
      },
      { type: 'job/state', time: turnEnd, key, state: 'checking' },
      { type: 'job/end', time: to, result },
    );
  }
  return events.sort((a, b) => a.time - b.time);
}

export function outcomeOf(results: readonly JobResult[], overrides: Partial<RunOutcome> = {}): RunOutcome {
  const byStatus: Record<string, number> = {};
  const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 0, toolCalls: 0 };
  let costUsd = 0;
  for (const result of results) {
    byStatus[result.status] = (byStatus[result.status] ?? 0) + 1;
    costUsd += result.costUsd ?? 0;
    for (const name of Object.keys(usage) as (keyof typeof usage)[]) usage[name] += result.usage?.[name] ?? 0;
  }
  return { total: results.length, byStatus, notRun: 0, wallMs: 60_000, usage, costUsd, ...overrides };
}
