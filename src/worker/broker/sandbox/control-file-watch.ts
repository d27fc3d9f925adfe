/**
 * Which files that other programs trust have appeared while a command ran: those that were not there could not be held. Whoever
 * reads the command's result is told. One kind is removed: a `commondir` in a repository's own directory has no use there, and would
 * have git take its settings and hooks from wherever it names.
 */
import { lstat, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { controlPlaces } from '../../../shared/permission/control-files.ts';

const redirect = '.git/commondir';
const names = ['.git', '.git/config', redirect, '.git/config.worktree', ...controlPlaces];
const mostNamed = 8;

export class ControlFileWatch {
  readonly #roots: readonly string[];
  readonly #before: ReadonlyMap<string, string>;

  private constructor(roots: readonly string[], before: ReadonlyMap<string, string>) {
    this.#roots = roots;
    this.#before = before;
  }

  static async begin(roots: readonly string[]): Promise<ControlFileWatch> {
    return new ControlFileWatch(roots, await look(roots));
  }

  /** Absolute paths, at most a few. */
  async news(): Promise<string[]> {
    const after = await look(this.#roots);
    const redirects = this.#roots.map((root) => join(root, redirect)).filter((path) => after.has(path) && !this.#before.has(path));
    // A link that stands for the directory is not followed: then there is nothing of ours to remove.
    await Promise.all(redirects.map((path) => rm(path, { force: true }).catch(() => undefined)));
    return [...after].flatMap(([path, print]) => (this.#before.get(path) === print ? [] : [path])).slice(0, mostNamed);
  }
}

/** A directory changes all the time: only that it is there counts. */
async function look(roots: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const paths = roots.flatMap((root) => names.map((name) => join(root, name)));
  await Promise.all(
    paths.map(async (path) => {
      try {
        const entry = await lstat(path);
        found.set(path, entry.isDirectory() ? `${entry.ino}` : `${entry.ino}:${entry.size}:${entry.mtimeMs}`);
      } catch {
        // Not there.
      }
    }),
  );
  return found;
}
