/**
 * The one observer of a run: hands events to the view and to what remembers them, and after the run writes files and summary in order.
 */
import { ServerError } from '../../../shared/errors.ts';
import { exportRun } from '../report/export-run.ts';
import type { RunExporter } from '../report/run-exporter.ts';
import { TimeLine } from '../report/time-line.ts';
import type { JobResult } from '../job-result.ts';
import type { Attempt } from '../job.ts';
import type { RunEvent, RunObserver, RunOutcome } from '../run-event.ts';
import { RunRecord } from './run-record.ts';
import { summaryText, type WrittenFile } from './summary.ts';
import { type ViewStream, writerTo } from './view-stream.ts';

export interface RunWatchOptions {
  readonly mode: 'live' | 'plain' | 'json' | 'quiet';
  readonly view: RunObserver | undefined;
  readonly exporters: readonly RunExporter[];
  readonly resultsPath: string;
  readonly attempts?: readonly Attempt[] | undefined;
  readonly stdout: ViewStream;
  readonly stderr: ViewStream;
  readonly now: () => number;
  readonly color: boolean;
}

/** Only what was at work when the run was stopped is cancelled; more than this is not kept. */
const mostCancelled = 10_000;

export class RunWatch implements RunObserver {
  readonly #options: RunWatchOptions;
  readonly #record = new RunRecord();
  readonly #timeLine = new TimeLine();
  readonly #cancelled: JobResult[] = [];

  constructor(options: RunWatchOptions) {
    this.#options = options;
  }

  onEvent(event: RunEvent): void {
    this.#options.view?.onEvent(event);
    this.#record.onEvent(event);
    this.#timeLine.onEvent(event);
    if (event.type === 'job/end' && event.result.status === 'cancelled' && this.#cancelled.length < mostCancelled) {
      const { patch: _patch, ...rest } = event.result;
      this.#cancelled.push(rest);
    }
  }

  /** @throws ServerError INTERNAL when a file could not be written; everything else was done then */
  async finish(outcome: RunOutcome): Promise<void> {
    const { view, mode, stdout, stderr, color, resultsPath } = this.#options;
    await view?.finish?.(outcome);
    const files = await this.#export(outcome);
    const shown: WrittenFile[] = [{ name: 'results', path: resultsPath }, ...files];
    if (mode !== 'quiet') writerTo(mode === 'json' ? stderr : stdout)(summaryText(outcome, this.#record, shown, color));
    const failed = files.flatMap(({ name, problem }) => (problem === undefined ? [] : [`${name} (${problem})`]));
    if (failed.length > 0) {
      throw new ServerError(
        'INTERNAL',
        `Not written: ${failed.join(', ')}. The results are whole in ${resultsPath}; run again to try once more.`,
      );
    }
  }

  async #export(outcome: RunOutcome): Promise<WrittenFile[]> {
    const { exporters, resultsPath, attempts, now } = this.#options;
    if (exporters.length === 0) return [];
    const plan = { resultsPath, exporters, outcome, timeLine: this.#timeLine, attempts, cancelled: this.#cancelled };
    return await exportRun({ ...plan, now: now() });
  }
}
