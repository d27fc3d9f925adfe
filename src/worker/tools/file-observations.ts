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

/** What a session has seen of a file. */
export interface SeenFile {
  readonly version: string;
  /** Of its text; known where the client's editor has a say in it. */
  readonly textHash: string | undefined;
}

export class FileObservations {
  readonly #versions = new Map<string, SeenFile>();
  #remembered = 0;

  /** Remembers that `path` (canonical) was seen in this version. */
  observe(path: string, version: string, textHash?: string): void {
    if (!this.#versions.has(path)) this.#remembered += 1;
    this.#versions.set(path, { version, textHash });
  }

  /** Canonical paths of everything that was seen. */
  get paths(): Iterable<string> {
    return this.#versions.keys();
  }

  /** How many files were ever remembered: whoever has looked at {@link paths} knows by it that there are more. */
  get remembered(): number {
    return this.#remembered;
  }

  /** What was last seen, or `undefined` when the file was never read. */
  seen(path: string): SeenFile | undefined {
    return this.#versions.get(path);
  }

  /** The version last seen, or `undefined` when the file was never read. */
  versionSeen(path: string): string | undefined {
    return this.#versions.get(path)?.version;
  }

  forget(path: string): void {
    this.#versions.delete(path);
  }

  /** Everything must be read again. */
  forgetAll(): void {
    this.#versions.clear();
  }
}
