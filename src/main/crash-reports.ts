/**
 * The runtime can write a report when it dies (`NODE_OPTIONS=--report-on-fatalerror` and the like): a file in the working directory with
 * the whole environment in it, keys and all. Not from this program.
 */
import process from 'node:process';

/** From now on this process and its threads write none, whatever the runtime was told. Costs nothing where it was told nothing. */
export function turnCrashReportsOff(): void {
  const options = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  if (!options.includes('--report')) return;
  // Typed as always there; a runtime may be built without it.
  const report = process.report as NodeJS.ProcessReport | undefined;
  if (report === undefined) return;
  report.reportOnFatalError = false;
  report.reportOnUncaughtException = false;
  report.reportOnSignal = false;
}
