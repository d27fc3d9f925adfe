/**
 * Git worktrees of a run: one an attempt, made from a commit, removed without a trace. Git's own bookkeeping is done one at a time per
 * repository; checkouts run beside each other.
 *
 * An attempt may write its worktree's `.git` file: after the worktree has been made it is never read again, and git is told where the repository
 * lies. Else an attempt could name a repository of its own, whose settings run programs.
 */
import { readFile, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import PQueue from 'p-queue';
import type { JobPlace } from '../job.ts';
import { git } from './git.ts';
import { harmlessSettings } from './repository-settings.ts';
import { removeTree } from './remove-tree.ts';
import type { RunDirectory } from './run-directory.ts';

export interface Worktree {
  /** Absolute. */
  readonly directory: string;
  /** Git's own directory for it, inside {@link commonDir}. */
  readonly gitDir: string;
  readonly commonDir: string;
  readonly baseCommit: string;
  /** Never rejects: what cannot be removed now is tried again when the run's directory is. */
  remove(): Promise<void>;
}

interface Repository {
  readonly commonDir: string;
  readonly bookkeeping: PQueue;
  /** Each revision means one commit for the whole run, also when its branch moves meanwhile. */
  readonly commits: Map<string, Promise<string>>;
}

const maxKept = 100_000;

export class Worktrees {
  readonly #run: RunDirectory;
  readonly #repositories = new Map<string, Promise<Repository>>();
  #count = 0;

  constructor(run: RunDirectory) {
    this.#run = run;
  }

  /** @throws GitFailed, or the system's error; then nothing is left of it */
  async create(place: Extract<JobPlace, { kind: 'worktree' }>, signal: AbortSignal): Promise<Worktree> {
    const repository = await this.#repository(place.repo);
    const { commonDir } = repository;
    const baseCommit = await this.#commit(repository, place.base);
    this.#count += 1;
    // The name is also that of git's directory for it, which must be unique in the repository among all runs.
    const directory = join(this.#run.path, `${this.#run.id.slice(4)}-${this.#count}`);
    const add = ['worktree', 'add', '--detach', '--no-checkout', directory, baseCommit];
    try {
      await repository.bookkeeping.add(async () => await git([`--git-dir=${commonDir}`, ...add]));
      const gitDir = await readGitDir(directory);
      const env = await harmlessSettings(gitDir);
      await git([`--git-dir=${gitDir}`, `--work-tree=${directory}`, 'reset', '--hard', '--quiet', baseCommit], {
        cwd: directory,
        env,
        signal,
      });
      return { directory, gitDir, commonDir, baseCommit, remove: async () => await this.#remove(repository, directory) };
    } catch (error) {
      await this.#remove(repository, directory);
      throw error;
    }
  }

  async #remove({ commonDir, bookkeeping }: Repository, directory: string): Promise<void> {
    try {
      await removeTree(directory);
      await bookkeeping.add(async () => await git([`--git-dir=${commonDir}`, 'worktree', 'remove', '--force', '--force', directory]));
    } catch {
      // Git's list still names it, or files of another user are in it.
      await rm(join(commonDir, 'worktrees', basename(directory)), { recursive: true, force: true }).catch(() => undefined);
    }
  }

  async #repository(path: string): Promise<Repository> {
    const known = this.#repositories.get(path);
    if (known !== undefined) return await known;
    if (this.#repositories.size >= maxKept) this.#repositories.clear();
    const opening = this.#open(path);
    this.#repositories.set(path, opening);
    return await opening;
  }

  async #open(path: string): Promise<Repository> {
    const commonDir = resolve(path, (await git(['rev-parse', '--git-common-dir'], { cwd: path })).trimEnd());
    this.#run.noteRepository(commonDir);
    return { commonDir, bookkeeping: new PQueue({ concurrency: 1 }), commits: new Map() };
  }

  async #commit({ commonDir, commits }: Repository, base: string): Promise<string> {
    const known = commits.get(base);
    if (known !== undefined) return await known;
    if (commits.size >= maxKept) commits.clear();
    const looking = git([`--git-dir=${commonDir}`, 'rev-parse', '--verify', '--quiet', '--end-of-options', `${base}^{commit}`]).then(
      (text) => text.trim(),
      (error: unknown) => {
        throw new Error(`the repository has no commit ${base}`, { cause: error });
      },
    );
    commits.set(base, looking);
    return await looking;
  }
}

async function readGitDir(directory: string): Promise<string> {
  const text = await readFile(join(directory, '.git'), 'utf8');
  const path = /^gitdir: (.+)\n?$/.exec(text)?.[1];
  if (path === undefined) throw new Error('git made a worktree whose .git file it does not use');
  return resolve(directory, path);
}
