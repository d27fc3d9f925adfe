/**
 * What a results file does not say of itself: from which jobs, with which agent and how it was made. Written anew by each run, and held against
 * what the next run is told.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { configError } from '../config/config-error.ts';
import { writeFailed } from './ledger/append-file.ts';
import type { RunOptions, RunSetup } from './run-options.ts';

/** What is kept of an earlier run. */
export interface EarlierRun {
  /** As the agent called itself. */
  readonly agent: string | undefined;
  /** Absent in a file of a version that did not write it. */
  readonly setup: RunSetup | undefined;
}

/** `undefined` where there is none that can be read. */
export function readSidecar(resultsPath: string): EarlierRun | undefined {
  try {
    const { agent, setup } = JSON.parse(readFileSync(sidecarPath(resultsPath), 'utf8')) as Partial<Record<keyof EarlierRun, unknown>>;
    return {
      agent: typeof agent === 'string' ? agent : undefined,
      setup: typeof setup === 'object' && setup !== null ? setup : undefined,
    };
  } catch {
    // Never written, or by somebody else: then there is nothing to compare with.
    return undefined;
  }
}

/** @throws ServerError CONFIG_INVALID naming every member in which the run that made the results was another one */
export function refuseOtherSetup(resultsPath: string, earlier: RunSetup | undefined, now: RunSetup): void {
  if (earlier === undefined) return;
  const names = setupMembers.filter((name) => earlier[name] !== now[name]);
  if (names.length === 0) return;
  const shown = names.map((name) => `${name} (${earlier[name] ?? 'none'}, now ${now[name] ?? 'none'})`);
  throw configError({
    key: '--out',
    expected: `results of a run like this one, but these differ: ${shown.join(', ')}; give another --out, or --force to put both into one file`,
    where: resultsPath,
  });
}

const setupMembers = ['model', 'baseUrl', 'profile', 'isolation', 'policy', 'command'] as const satisfies (keyof RunSetup)[];

/** @throws ServerError LOG_WRITE_FAILED */
export function writeSidecar(resultsPath: string, options: RunOptions, facts: { agent: string; runId: string; startedAt: string }): void {
  const { jobs, repeat, shuffleSeed, concurrency, version, defaults, agent } = options;
  const path = sidecarPath(resultsPath);
  const content = {
    version: 1,
    jobs: { file: jobs.name, sha256: jobs.fileHash, count: jobs.count, invalid: jobs.invalid },
    repeat,
    shuffleSeed,
    concurrency,
    mode: defaults.mode,
    agent: facts.agent,
    setup: agent.setup,
    runner: version,
    run: facts.runId,
    startedAt: facts.startedAt,
  };
  const draft = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    writeFileSync(draft, `${JSON.stringify(content, undefined, 2)}\n`);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw writeFailed(path, error);
  }
}

function sidecarPath(resultsPath: string): string {
  return `${resultsPath}.run.json`;
}
