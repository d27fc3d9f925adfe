/**
 * Which files a session has seen, and in which version, so that an edit never overwrites what it has not read.
 *
 * Kept in memory: after a revive everything must be read again, which is the safe side.
 */
import type { Stats } from 'node:fs';

/** Identity of a file's content as far as the file system tells: size, modification time, inode. */
export function versionOf(stats: Pick<Stats, 'size' | 'mtimeMs' | 'ino'>): string {
  return `${stats.ino}:${stats.size}:${stats.mtimeMs}`;
}

export class FileObservations {
  readonly #versions = new Map<string, string>();

  /** Remembers that `path` (canonical) was seen in this version. */
  observe(path: string, version: string): void {
    this.#versions.set(path, version);
  }

  /** The version last seen, or `undefined` when the file was never read. */
  versionSeen(path: string): string | undefined {
    return this.#versions.get(path);
  }

  forget(path: string): void {
    this.#versions.delete(path);
  }

  /** Everything must be read again. */
  forgetAll(): void {
    this.#versions.clear();
  }
}
