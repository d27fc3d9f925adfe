/** What a results file does not say of itself: from which jobs, with which agent and how it was made. Written anew by each run. */
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { writeFailed } from './ledger/append-file.ts';
import type { RunOptions } from './run-options.ts';

/** @throws ServerError LOG_WRITE_FAILED */
export function writeSidecar(resultsPath: string, options: RunOptions, facts: { agent: string; runId: string; startedAt: string }): void {
  const { jobs, repeat, shuffleSeed, concurrency, version, defaults } = options;
  const path = `${resultsPath}.run.json`;
  const content = {
    version: 1,
    jobs: { file: jobs.name, sha256: jobs.fileHash, count: jobs.count, invalid: jobs.invalid },
    repeat,
    shuffleSeed,
    concurrency,
    mode: defaults.mode,
    agent: facts.agent,
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
