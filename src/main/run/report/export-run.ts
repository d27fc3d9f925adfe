/**
 * Makes the files of a run from its results file in two passes: figures first, then every result to every file. What does not work
 * for one file leaves the others alone.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JobResult } from '../job-result.ts';
import type { Attempt } from '../job.ts';
import type { RunOutcome } from '../run-event.ts';
import type { WrittenFile } from '../view/summary.ts';
import { readResults } from './read-results.ts';
import { ResultStats } from './result-stats.ts';
import type { RunExporter, RunFacts, UnrunAttempt } from './run-exporter.ts';
import type { TimeLine } from './time-line.ts';

export interface ExportPlan {
  readonly resultsPath: string;
  readonly exporters: readonly RunExporter[];
  readonly outcome: RunOutcome;
  readonly timeLine: TimeLine;
  /** All attempts of the jobs file; results of others are left out. `undefined`: every line counts. */
  readonly attempts: readonly Attempt[] | undefined;
  /** Cancelled attempts have no line in the results file. */
  readonly cancelled: readonly JobResult[];
  readonly now: number;
}

const sliceMs = 50;

/** Writes all files. Never rejects: what could not be written has a `problem`. */
export async function exportRun(plan: ExportPlan): Promise<WrittenFile[]> {
  const lanes = plan.exporters.map((exporter) => new Lane(exporter));
  try {
    const results = new CountingResults(plan);
    const facts = await gatherFacts(plan, results);
    for (const lane of lanes) await lane.run((exporter) => exporter.open(facts));
    await results.each(async (result) => {
      for (const lane of lanes) await lane.run((exporter) => exporter.add(result));
    });
    for (const lane of lanes) await lane.run((exporter) => exporter.close());
  } catch (error) {
    for (const lane of lanes) await lane.fail(error);
  }
  return lanes.map(({ written }) => written);
}

async function gatherFacts(plan: ExportPlan, results: CountingResults): Promise<RunFacts> {
  const stats = new ResultStats();
  await results.find();
  const seen = new Set<string>();
  await results.each((result) => {
    stats.add(result);
    seen.add(result.key);
  });
  const attempts = new Map(plan.attempts?.map((attempt) => [attempt.key, attempt]));
  const unrun: UnrunAttempt[] = [];
  for (const { key, job } of attempts.values()) {
    if (!seen.has(key)) unrun.push({ key, id: job.id, labels: job.labels });
  }
  const { outcome, timeLine, resultsPath, now } = plan;
  const promptsOf = ({ key }: JobResult) => attempts.get(key)?.job.prompts;
  return { outcome, stats, timeLine, agent: timeLine.agent, resultsPath, unrun, promptsOf, now };
}

/** The results that count: of each key the last line, and of known attempts only. */
class CountingResults {
  readonly #plan: ExportPlan;
  /** The line that counts, by key. */
  readonly #lines = new Map<string, number>();
  readonly #keys: ReadonlySet<string> | undefined;

  constructor(plan: ExportPlan) {
    this.#plan = plan;
    this.#keys = plan.attempts === undefined ? undefined : new Set(plan.attempts.map(({ key }) => key));
  }

  async find(): Promise<void> {
    await readResults(this.#plan.resultsPath, (result, line) => {
      if (this.#keys?.has(result.key) !== false) this.#lines.set(result.key, line);
    });
  }

  async each(onResult: (result: JobResult) => void | Promise<void>): Promise<void> {
    let started = performance.now();
    const take = async (result: JobResult): Promise<void> => {
      await onResult(result);
      if (performance.now() - started < sliceMs) return;
      await nextTurn();
      started = performance.now();
    };
    await readResults(this.#plan.resultsPath, (result, line) => {
      return this.#lines.get(result.key) === line ? take(result) : undefined;
    });
    for (const result of this.#plan.cancelled) if (!this.#lines.has(result.key)) await take(result);
  }
}

/** One file on its way; after its first failure it is left alone. */
class Lane {
  readonly #exporter: RunExporter;
  #problem: string | undefined;

  constructor(exporter: RunExporter) {
    this.#exporter = exporter;
  }

  get written(): WrittenFile {
    const { name, path } = this.#exporter;
    return this.#problem === undefined ? { name, path } : { name, path, problem: this.#problem };
  }

  async run(step: (exporter: RunExporter) => Promise<void>): Promise<void> {
    if (this.#problem !== undefined) return;
    try {
      await step(this.#exporter);
    } catch (error) {
      await this.fail(error);
    }
  }

  async fail(error: unknown): Promise<void> {
    if (this.#problem !== undefined) return;
    this.#problem = error instanceof Error ? error.message : String(error);
    await this.#exporter.abandon();
  }
}
