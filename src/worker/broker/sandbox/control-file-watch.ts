/**
 * Which files that other programs trust have appeared while a command ran: those that were not there could not be held. Nothing is
 * removed; whoever reads the command's result is told.
 */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { controlPlaces } from '../../../shared/permission/control-files.ts';

const names = ['.git', '.git/config', ...controlPlaces];
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
