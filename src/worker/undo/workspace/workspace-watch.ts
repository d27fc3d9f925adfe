/**
 * Finds out what a command, or another program that works for the session, has changed in the workspace, and keeps what was
 * there before: then an undo knows of it as of a change by the file tools. For sessions that ask for it.
 *
 * A workspace that is too large, or a git that fails, ends it for the session: commands run as ever, and an undo names them.
 */
import { lstat, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventInput } from '../../../shared/events.ts';
import type { FileSnapshotData, FileState } from '../../../shared/undo-events.ts';
import { isMissing } from '../../tools/fs-fault.ts';
import { contentHash, type SnapshotStore } from '../snapshot-store.ts';
import { type GitTree, type TreeChange, TreeFault } from './git-tree.ts';

/** What changed beyond this is not kept. */
const mostChanges = 2_000;

export interface ObservedCall {
  readonly turn: number;
  readonly callId: string;
  readonly signal: AbortSignal;
  /** Logs what was found. Throws when the log cannot be written. */
  record(event: EventInput): unknown;
}

export interface WorkspaceWatchOptions {
  readonly cwd: string;
  readonly tree: GitTree;
  readonly store: SnapshotStore;
  /** Where old versions are written to be read, for a moment. Absolute. */
  readonly scratchDir: string;
}

export class WorkspaceWatch {
  readonly #options: WorkspaceWatchOptions;
  #fault: string | undefined;
  /** Trees are made one after the other: they have one index. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: WorkspaceWatchOptions) {
    this.#options = options;
  }

  /**
   * Runs the call between two looks at the workspace. Fulfils and rejects as `execute` does. A call that was cut short is not
   * looked at again: its turn is over.
   *
   * @throws what `record` throws
   */
  async around<T>(call: ObservedCall, execute: () => Promise<T>): Promise<T> {
    const before = await this.#guarded((tree) => tree.write());
    const result = await execute();
    try {
      if (!call.signal.aborted) await this.#observe(call, before);
    } catch (error) {
      if (!call.signal.aborted) throw error;
    }
    return result;
  }

  async #observe(call: ObservedCall, before: string | undefined): Promise<void> {
    const after = before === undefined ? undefined : await this.#guarded((tree) => tree.write());
    const found = before === undefined || after === undefined ? undefined : await this.#guarded((tree) => this.#found(tree, before, after));
    for (const change of found?.changes ?? []) call.record(eventOf(call, change));
    const { turn, callId } = call;
    const why = found === undefined ? (this.#fault ?? 'it could not be looked at') : found.why;
    call.record({
      type: 'workspace/observed',
      data: { turn, callId, changed: found?.changes.length ?? 0, ...(why === undefined ? {} : { why }) },
    });
  }

  /** What changed between the trees, with the old content kept. */
  async #found(tree: GitTree, before: string, after: string): Promise<Found> {
    const differences = await tree.differences(before, after);
    const taken = differences.slice(0, mostChanges);
    const old = taken.filter(({ modeBefore }) => modeBefore !== undefined).map(({ path }) => path);
    const { scratchDir } = this.#options;
    try {
      if (old.length > 0) await tree.extract(before, old, scratchDir);
      const changes: KeptChange[] = [];
      for (const difference of taken) changes.push(await this.#kept(difference));
      const missed = differences.length - taken.length;
      return { changes, ...(missed === 0 ? {} : { why: `${missed} more files were changed by it` }) };
    } finally {
      await rm(scratchDir, { recursive: true, force: true });
    }
  }

  async #kept({ path: name, modeBefore }: TreeChange): Promise<KeptChange> {
    const { cwd, store, scratchDir } = this.#options;
    const path = join(cwd, name);
    const after = await presentState(path);
    if (modeBefore === undefined) return { path, before: null, after };
    const content = await readFile(join(scratchDir, name));
    const state = stateOf(content);
    const notKept = await store.keep(content, state.hash);
    return { path, before: { ...state, mode: modeBefore }, after, ...(notKept === undefined ? {} : { notKept }) };
  }

  /** One after the other, as the trees have one index. `undefined` when it failed: from then on nothing is looked at any more. */
  async #guarded<T>(work: (tree: GitTree) => Promise<T>): Promise<T | undefined> {
    const done = this.#last.then(async () => (this.#fault === undefined ? await work(this.#options.tree) : undefined));
    this.#last = done.catch(() => undefined);
    try {
      return await done;
    } catch (error) {
      this.#fault = error instanceof TreeFault ? error.message : 'the workspace could not be read';
      return undefined;
    }
  }
}

type KeptChange = Pick<FileSnapshotData, 'path' | 'before' | 'after' | 'notKept'>;

interface Found {
  readonly changes: readonly KeptChange[];
  /** Why that is not all of it. */
  readonly why?: string;
}

function eventOf({ turn, callId }: ObservedCall, change: KeptChange): EventInput {
  return { type: 'file/snapshot', data: { turn, callId, ...change, observed: true } };
}

function stateOf(content: Buffer): FileState & { readonly hash: string } {
  return { hash: contentHash(content), bytes: content.length };
}

async function presentState(path: string): Promise<FileState | null> {
  try {
    if (!(await lstat(path)).isFile()) return null;
    return stateOf(await readFile(path));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
