/**
 * Runs of subagents, started and put away at random moments: good children and bad ones, fresh and warm. For a short test and
 * for a long campaign; whoever uses it looks at what is left.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { SubagentProvider, SubagentResult } from '../../src/shared/subagent-protocol.ts';
import { markedProcesses } from '../../src/shared/process-table.ts';
import { Broker } from '../../src/worker/broker/broker.ts';
import { badProvider } from './subagent-rig.ts';

const behaviours = [
  'good',
  'good',
  'slow',
  'mute',
  'dies-after',
  'daemon',
  'deaf',
  'late',
  'works',
  'asks',
  'answers-twice',
  'noise',
  'dies-before',
];
const ways = ['dispose', 'cancel', 'release', 'wait'] as const;

/** A small generator with a seed (mulberry32): a campaign can be repeated. */
export function randomWith(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

export class SubagentCampaign {
  /** How runs ended, or why they did not start, and how often. */
  readonly ends = new Map<string, number>();
  /** In milliseconds. */
  readonly startTimes: number[] = [];
  readonly disposeTimes: number[] = [];
  /** Process groups that live. */
  readonly groups = new Set<number>();
  spawned = 0;
  readonly #folder: string;
  readonly #random: () => number;
  readonly #mark: string;
  readonly #providers: readonly SubagentProvider[];
  #lastRun = 0;

  constructor(folder: string, seed: number) {
    this.#folder = folder;
    this.#random = randomWith(seed);
    this.#mark = `campaign-${process.pid}-${seed}`;
    const graces = { disposeEofGraceMs: 500, disposeGraceMs: 200, permission: 'ask', maxRunning: 6 } as const;
    this.#providers = behaviours.flatMap((behaviour, index) => [
      badProvider(behaviour, { name: `fresh-${index}`, ...graces }),
      badProvider(behaviour, { name: `warm-${index}`, poolSize: 2, poolIdleMs: 1500, ...graces }),
    ]);
  }

  /** Processes that carry the campaign's mark. */
  left(): number[] {
    return markedProcesses(`${this.#mark}/`).map(({ pid }) => pid);
  }

  /** What is wrong with the way the runs went, whatever they left; `undefined` when it shows something. */
  complaint(): string | undefined {
    const all = [...this.ends.values()].reduce((sum, times) => sum + times, 0);
    const failed = [...this.ends].filter(([end]) => end.startsWith('not started') && !end.endsWith('REQUEST_CANCELLED'));
    const failedStarts = failed.reduce((sum, [, times]) => sum + times, 0);
    if ((this.ends.get('completed') ?? 0) === 0) return 'no run completed';
    return failedStarts > all / 3 ? `${failedStarts} of ${all} starts failed` : undefined;
  }

  /** A broker with so many runs, some at once, and its end; fulfils with how long that took, in milliseconds. */
  async round(runs: number, atOnce: number): Promise<number> {
    const broker = new Broker({
      mark: this.#mark,
      ambient: process.env,
      subagents: this.#providers,
      onGroupStarted: (pgid) => {
        this.groups.add(pgid);
        this.spawned += 1;
      },
      onGroupEnded: (pgid) => this.groups.delete(pgid),
    });
    let left = runs;
    const lane = async (): Promise<void> => {
      for (; left > 0; await this.#run(broker)) left -= 1;
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    const shutdownAt = performance.now();
    await broker.shutdown();
    return performance.now() - shutdownAt;
  }

  async #run(broker: Broker): Promise<void> {
    this.#lastRun += 1;
    const owner = `session-${this.#lastRun % 20}`;
    const runId = `run-${this.#lastRun}`;
    const provider = this.#pick(this.#providers).name;
    const spillDir = join(this.#folder, 'spill');
    const startedAt = performance.now();
    const starting = broker.startSubagent({ owner, runId, provider, prompt: 'work', cwd: this.#folder, depth: 1, spillDir });
    const patience = this.#random() * 400;
    const way = this.#pick(ways);
    if (this.#random() < 0.3) await delay(this.#random() * 100);
    else if ((await starting).ok) this.startTimes.push(performance.now() - startedAt);
    const following = starting.then((started) => (started.ok ? this.#follow(broker, owner, runId) : undefined));
    const timer = new AbortController();
    const waited = delay(way === 'wait' ? patience + 1500 : patience, undefined, { signal: timer.signal }).catch(() => undefined);
    await (way === 'wait' ? Promise.race([following, waited]) : waited);
    timer.abort();
    if (way === 'cancel') await broker.cancelSubagent(owner, runId);
    if (way === 'release') await broker.releaseOwner(owner);
    const disposedAt = performance.now();
    await broker.disposeSubagent(owner, runId);
    this.disposeTimes.push(performance.now() - disposedAt);
    const started = await starting;
    const end = started.ok ? ((await following)?.stopReason ?? 'forgotten') : `not started: ${started.code}`;
    this.ends.set(end, (this.ends.get(end) ?? 0) + 1);
  }

  /** Reads to the end, and answers whatever is asked, or not. */
  async #follow(broker: Broker, owner: string, runId: string): Promise<SubagentResult | undefined> {
    for (let seq = -1; ; ) {
      const answer = await broker.awaitSubagent(owner, runId, seq, 5000);
      if (!answer.ok) return undefined;
      const { questions, result } = answer.value;
      if (result !== undefined) return result;
      for (const { questionId } of questions) {
        if (this.#random() < 0.8) await broker.answerSubagent(owner, runId, questionId, this.#random() < 0.5);
      }
      seq = answer.value.seq;
    }
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)]!;
  }
}
