/**
 * Everything that watches a run, put together: the view that was asked for, the files made at the end, and the summary.
 */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { ServerError } from '../../../shared/errors.ts';
import { errorCode } from '../../../shared/log/log-faults.ts';
import { JUnitFile } from '../report/junit-file.ts';
import { ReportFile } from '../report/report-file.ts';
import type { RunExporter } from '../report/run-exporter.ts';
import { TrajectoryFile } from '../report/trajectory-file.ts';
import type { Attempt } from '../job.ts';
import type { RunObserver } from '../run-event.ts';
import { JsonView } from './json-view.ts';
import { LiveView } from './live-view.ts';
import { PlainView } from './plain-view.ts';
import { RunWatch } from './run-watch.ts';
import type { ViewStream } from './view-stream.ts';

export interface ViewOptions {
  /** `live` needs a terminal as `stdout`. `quiet` says nothing unless a file could not be written. */
  readonly mode: 'live' | 'plain' | 'json' | 'quiet';
  /** The view; the summary too, except with `json`, where stdout has events only. */
  readonly stdout: ViewStream;
  readonly stderr: ViewStream;
  /** Absolute, all four. */
  readonly reportPath?: string | undefined;
  readonly junitPath?: string | undefined;
  readonly trajectoriesPath?: string | undefined;
  readonly resultsPath: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /**
   * All attempts of the jobs file, those with results too. With them, results of jobs that the file does not have are left out,
   * attempts that were not run are named, and what has no log has its prompts.
   */
  readonly attempts?: readonly Attempt[] | undefined;
  /** Colours in `live` and its summary; by default on a terminal unless `NO_COLOR` is set. */
  readonly color?: boolean | undefined;
}

/**
 * The observers of one run, to be given every event. Their `finish` writes the files, then the summary; it rejects with a
 * ServerError INTERNAL behind all that when a file could not be written.
 *
 * @throws ServerError CONFIG_INVALID when a file could not be put where it is to be: better now than after hours
 */
export function createObservers(options: ViewOptions): RunObserver[] {
  const exporters = createExporters(options);
  for (const { name, path } of exporters) requireWritablePlace(name, path);
  return [new RunWatch({ ...options, view: createView(options), exporters, color: usesColor(options) })];
}

function createExporters({ reportPath, junitPath, trajectoriesPath }: ViewOptions): RunExporter[] {
  return [
    ...(reportPath === undefined ? [] : [new ReportFile(reportPath)]),
    ...(junitPath === undefined ? [] : [new JUnitFile(junitPath)]),
    ...(trajectoriesPath === undefined ? [] : [new TrajectoryFile(trajectoriesPath)]),
  ];
}

function createView(options: ViewOptions): RunObserver | undefined {
  const { mode, stdout, now } = options;
  switch (mode) {
    case 'live':
      return new LiveView({ stream: stdout, now, color: usesColor(options) });
    case 'plain':
      return new PlainView(stdout, now);
    case 'json':
      return new JsonView(stdout);
    case 'quiet':
    default:
      return undefined;
  }
}

/** `NO_COLOR` counts when it is set to anything but an empty text. */
function usesColor({ color, mode, stdout }: ViewOptions): boolean {
  return color ?? (mode === 'live' && stdout.isTTY === true && (process.env['NO_COLOR'] ?? '') === '');
}

/** Makes the directory of the file if it is missing. */
function requireWritablePlace(name: string, path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    const why = errorCode(error) ?? 'unknown fault';
    throw new ServerError(
      'CONFIG_INVALID',
      `The ${name} cannot be written: ${dirname(path)} is no directory that can be written to (${why}).`,
      {
        cause: error,
      },
    );
  }
}
