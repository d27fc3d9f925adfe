/**
 * Repositories in a workspace, found by their `.git`: bounded, the outer directories first. What was seen of a directory is kept while the kernel
 * says that nothing in it was added, removed or renamed.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { quickLook } from './quick-look.ts';

export interface GitSearchBounds {
  /** Of the directories that are looked into, in each root. */
  readonly directories: number;
  /** Of directories below the root. */
  readonly depth: number;
}

interface Seen {
  readonly print: string;
  readonly subdirectories: readonly string[];
  readonly holdsGit: boolean;
}

const usualBounds: GitSearchBounds = { directories: 1_024, depth: 6 };
/** What a package manager fills: thousands of directories, and not the person's own. */
const skipped = new Set(['.git', 'node_modules']);
const mostKept = 20_000;
/** The clock of a file system is coarse: what changed this short before the look may change again without a trace. */
const settledMs = 100;

export class GitSearch {
  readonly #bounds: GitSearchBounds;
  readonly #kept = new Map<string, Seen>();

  constructor(bounds: GitSearchBounds = usualBounds) {
    this.#bounds = bounds;
  }

  /** Paths of `.git` entries, whatever these are; that of the root itself first. Never rejects. */
  async find(root: string): Promise<string[]> {
    const found: string[] = [];
    let level = [root];
    let left = this.#bounds.directories;
    for (let depth = 0; level.length > 0 && depth <= this.#bounds.depth && left > 0; depth += 1) {
      const now = level.slice(0, left);
      left -= now.length;
      const seen = await Promise.all(now.map((directory) => this.#look(directory)));
      level = [];
      for (const [index, one] of seen.entries()) {
        const directory = now[index];
        if (one === undefined || directory === undefined) continue;
        if (one.holdsGit) found.push(join(directory, '.git'));
        for (const name of one.subdirectories) level.push(join(directory, name));
      }
    }
    return found;
  }

  async #look(directory: string): Promise<Seen | undefined> {
    try {
      const entry = await quickLook(directory);
      if (entry === undefined) return undefined;
      const { ino, ctimeMs } = entry;
      const print = `${ino}:${ctimeMs}`;
      const kept = this.#kept.get(directory);
      if (kept?.print === print) return kept;
      const begin = Date.now();
      const entries = await readdir(directory, { withFileTypes: true });
      const subdirectories = entries.filter((entry) => entry.isDirectory() && !skipped.has(entry.name)).map(({ name }) => name);
      const seen = { print, subdirectories, holdsGit: entries.some(({ name }) => name === '.git') };
      if (this.#kept.size >= mostKept) this.#kept.clear();
      if (ctimeMs < begin - settledMs) this.#kept.set(directory, seen);
      return seen;
    } catch {
      return undefined; // Gone, or not to be read: nothing in it is reached.
    }
  }
}
