/**
 * One runner per results file. The lock file appears whole and names its owner; one whose owner is gone is replaced by exactly one of those
 * who want it: the one that gets the claim, a second name of the stale file.
 */
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { identifySelf, isRunning, type ProcessIdentity } from '../../../shared/process-identity.ts';
import { configError } from '../../config/config-error.ts';
import { writeFailed } from './append-file.ts';

/** Others take over within microseconds; what is older was left behind. */
const patienceMs = 2_000;

export class RunLock {
  readonly #path: string;
  readonly #text: string;

  private constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text;
  }

  /** @throws ServerError CONFIG_INVALID while another runner has the file; LOG_WRITE_FAILED when the disk refuses */
  static async take(resultsPath: string): Promise<RunLock> {
    const path = `${resultsPath}.lock`;
    const text = `${JSON.stringify({ ...identifySelf(), nonce: randomBytes(8).toString('hex') })}\n`;
    const deadline = performance.now() + patienceMs;
    do {
      if (place(path, text, resultsPath)) return new RunLock(path, text);
      await delay(1 + Math.random() * 4);
    } while (performance.now() < deadline);
    throw held(resultsPath, undefined);
  }

  /** Never throws: a lock that is left is stale once this process has ended. */
  release(): void {
    try {
      if (readFileSync(this.#path, 'utf8') === this.#text) rmSync(this.#path);
    } catch {
      // It is gone, or its directory is.
    }
  }
}

function place(path: string, text: string, resultsPath: string): boolean {
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600 });
    if (tryLink(draft, path)) return true;
    const holder = readHolder(path);
    if (holder === undefined) return false;
    if (holder.owner !== undefined && isRunning(holder.owner)) throw held(resultsPath, holder.owner.pid);
    return replace(draft, path, holder.ino);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'CONFIG_INVALID') throw error;
    throw writeFailed(path, error);
  } finally {
    rmSync(draft, { force: true });
  }
}

function replace(draft: string, path: string, staleInode: bigint): boolean {
  const claim = `${path}.claim`;
  if (!tryLink(path, claim)) {
    const left = statSync(claim, { throwIfNoEntry: false });
    if (left !== undefined && Date.now() - left.ctimeMs > patienceMs / 2) rmSync(claim, { force: true });
    return false;
  }
  try {
    if (statSync(claim, { bigint: true }).ino !== staleInode) return false;
    renameSync(draft, path);
    return true;
  } finally {
    rmSync(claim, { force: true });
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ENOENT: what was there was let go meanwhile.
    if (code === 'EEXIST' || code === 'ENOENT') return false;
    throw error;
  }
}

/** `owner` is `undefined` for a file that nobody alive would have left so. */
function readHolder(path: string): { readonly ino: bigint; readonly owner: ProcessIdentity | undefined } | undefined {
  try {
    const { ino } = statSync(path, { bigint: true });
    const { pid, processStart, bootId } = JSON.parse(readFileSync(path, 'utf8')) as Partial<ProcessIdentity>;
    return { ino, owner: typeof pid === 'number' && typeof bootId === 'string' ? { pid, processStart, bootId } : undefined };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (error instanceof SyntaxError) return { ino: statSync(path, { bigint: true }).ino, owner: undefined };
    throw error;
  }
}

function held(resultsPath: string, pid: number | undefined): Error {
  const who = pid === undefined ? 'another runner' : `the runner with process id ${pid}`;
  return configError({
    key: '--out',
    expected: `a file that no other run writes, but ${who} has it`,
    came: resultsPath,
    where: 'command line',
  });
}
