/**
 * The directory of one run below the worktree directory: its worktrees, and a file that names the process they belong to. So a later run
 * finds what a killed one left, and leaves alone what a live one has.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { identifySelf, isRunning, type ProcessIdentity } from '../../../shared/process-identity.ts';
import { markedProcesses, signalProcess } from '../../../shared/process-table.ts';
import { configError } from '../../config/config-error.ts';
import { markVariable } from '../job-environment.ts';
import { git } from './git.ts';
import { removeTree } from './remove-tree.ts';

const ownerFile = 'owner.json';
const reposFile = 'repos.jsonl';
const runIdPattern = /^run-[0-9a-f]{16}$/;

export class RunDirectory {
  readonly id: string;
  readonly path: string;
  readonly #repos = new Set<string>();

  private constructor(id: string, path: string) {
    this.id = id;
    this.path = path;
  }

  /** @param root made if it is missing. @throws ServerError CONFIG_INVALID when the system refuses */
  static create(root: string): RunDirectory {
    const id = `run-${randomBytes(8).toString('hex')}`;
    const path = join(root, id);
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      writeFileSync(join(path, ownerFile), JSON.stringify(identifySelf()), { mode: 0o600 });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
      throw configError({
        key: '--worktree-dir',
        expected: `a directory that can be written, but making ${path} gave ${code}`,
        where: root,
      });
    }
    return new RunDirectory(id, path);
  }

  /** To be called before a repository gets its first worktree of this run. */
  noteRepository(commonDir: string): void {
    if (this.#repos.has(commonDir)) return;
    this.#repos.add(commonDir);
    appendFileSync(join(this.path, reposFile), `${JSON.stringify(commonDir)}\n`);
  }

  /** Leaves the directory to whoever wants to look at it: no later run takes it for a killed one's. */
  keep(): void {
    rmSync(join(this.path, ownerFile), { force: true });
  }

  /** Removes the directory and all that is still in it. Never rejects: what cannot be removed is tried again by the next run. */
  async remove(): Promise<void> {
    await removeRun(this.path, [...this.#repos]);
  }
}

/**
 * Ends the processes and removes the worktrees of runs whose process is gone.
 *
 * @returns how many runs there were
 */
export async function removeStaleRuns(root: string): Promise<number> {
  let removed = 0;
  for (const name of listRuns(root)) {
    const path = join(root, name);
    const owner = readOwner(path);
    if (owner === undefined || isRunning(owner)) continue;
    endLeftovers(name);
    await removeRun(path, readRepos(path));
    removed += 1;
  }
  return removed;
}

/** Kills every process that carries the mark of the run, or of a part of it. Looks at every process once, some milliseconds. */
export function endLeftovers(runId: string, part?: string): void {
  const mark = `${markVariable}=${runId}.${part === undefined ? '' : `${part};`}`;
  for (const { pid } of markedProcesses(mark)) signalProcess(pid, 'SIGKILL');
}

function listRuns(root: string): string[] {
  try {
    return readdirSync(root).filter((name) => runIdPattern.test(name));
  } catch {
    // No run has made the directory yet.
    return [];
  }
}

/** `undefined` where the file is missing or half written: a run that begins at this moment, or one that is being removed. */
function readOwner(path: string): ProcessIdentity | undefined {
  try {
    const { pid, processStart, bootId } = JSON.parse(readFileSync(join(path, ownerFile), 'utf8')) as Partial<ProcessIdentity>;
    return typeof pid === 'number' && typeof bootId === 'string' ? { pid, processStart, bootId } : undefined;
  } catch {
    return undefined;
  }
}

function readRepos(path: string): string[] {
  try {
    const lines = readFileSync(join(path, reposFile), 'utf8').split('\n');
    return lines.flatMap((line) => {
      const repo: unknown = line === '' ? undefined : JSON.parse(line);
      return typeof repo === 'string' ? [repo] : [];
    });
  } catch {
    // The run made no worktree.
    return [];
  }
}

async function removeRun(path: string, repos: readonly string[]): Promise<void> {
  try {
    for (const repo of repos) await forgetWorktrees(repo, path);
    // Last the file that names the owner: a run that is killed here is found again.
    for (const name of readdirSync(path)) if (name !== ownerFile) await removeTree(join(path, name));
    await rm(path, { recursive: true, force: true });
  } catch {
    // Somebody else's files in it, or a full disk: the next run tries again.
  }
}

/** Takes all worktrees below a directory out of the repository's list. */
async function forgetWorktrees(commonDir: string, below: string): Promise<void> {
  let list: string;
  try {
    list = await git([`--git-dir=${commonDir}`, 'worktree', 'list', '--porcelain', '-z']);
  } catch {
    // The repository is gone, and its list with it.
    return;
  }
  const paths = list.split('\0').flatMap((line) => (line.startsWith('worktree ') ? [line.slice('worktree '.length)] : []));
  for (const path of paths.filter((one) => one.startsWith(`${below}/`))) {
    await removeTree(path);
    // Twice forced: one that was killed while it was made is locked.
    await git([`--git-dir=${commonDir}`, 'worktree', 'remove', '--force', '--force', path]).catch(() => undefined);
  }
}
