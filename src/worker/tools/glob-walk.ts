/**
 * Finds files without ripgrep: a walk bounded in entries, depth and time, which follows no links and reads no ignore files.
 */
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { FsFault } from './fs-fault.ts';
import { type GlobPattern, globPattern } from '../../shared/glob-pattern.ts';

const maxEntries = 100_000;
const maxMatches = 5000;
const maxDepth = 64;
const maxMs = 10_000;
/** Never of interest without ignore files to say so, and often huge. */
const skipped = new Set(['.git', 'node_modules']);

export interface WalkResult {
  /** Absolute paths. */
  readonly paths: readonly string[];
  /** False when a limit ended the walk. */
  readonly complete: boolean;
}

interface WalkState {
  readonly matcher: GlobPattern;
  readonly signal: AbortSignal;
  readonly deadline: number;
  readonly paths: string[];
  entries: number;
}

/**
 * Walks below `root`, absolute.
 *
 * @throws FsFault FS_INVALID_PATH for a pattern that is not a glob; the signal's reason when it aborts
 */
export async function walkGlob(root: string, pattern: string, signal: AbortSignal): Promise<WalkResult> {
  const own = pattern.startsWith(`${root}/`) ? pattern.slice(root.length) : pattern;
  const matcher = globPattern(own);
  if (matcher === undefined) {
    throw new FsFault('FS_INVALID_PATH', 'The pattern is not a valid glob. Use *, **, ?, [a-z] and {a,b}.');
  }
  const state: WalkState = { matcher, signal, deadline: performance.now() + maxMs, paths: [], entries: 0 };
  const complete = await walk(state, root, { below: '', depth: 0 });
  return { paths: state.paths, complete };
}

/** False when a limit was met. */
async function walk(state: WalkState, root: string, at: { readonly below: string; readonly depth: number }): Promise<boolean> {
  const directory = await opendir(join(root, at.below)).catch(() => undefined);
  if (directory === undefined) {
    // Not readable for this user, or gone meanwhile: the rest is still worth listing.
    return true;
  }
  let complete = true;
  for await (const entry of directory) {
    state.signal.throwIfAborted();
    state.entries += 1;
    if (state.entries > maxEntries || state.paths.length >= maxMatches || performance.now() > state.deadline) {
      return false;
    }
    const below = at.below === '' ? entry.name : `${at.below}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!skipped.has(entry.name)) {
        complete = at.depth < maxDepth && (await walk(state, root, { below, depth: at.depth + 1 })) && complete;
      }
    } else if (entry.isFile() && state.matcher.test(below)) {
      state.paths.push(join(root, below));
    }
  }
  return complete;
}
