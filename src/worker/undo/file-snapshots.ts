/**
 * Keeps what a file holds before it is changed, so that the change can be undone: the content in the session's store, the
 * fact in its log, both on the disk before the change is made.
 *
 * A content that cannot be kept does not hold the change up: the log then says that it cannot be undone.
 */
import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EventData, EventInput } from '../../shared/events.ts';
import type { FileState } from '../../shared/undo-events.ts';
import { versionOf } from '../tools/file-observations.ts';
import { FsFault, isMissing } from '../tools/fs-fault.ts';
import { openRegularFile } from '../tools/open-regular-file.ts';
import { staleFault } from '../tools/replace-file.ts';
import { readWhole } from '../tools/text-file.ts';
import type { ActualChange, FileChange } from '../tools/tool.ts';
import { contentHash, type NotKept, type SnapshotStore } from './snapshot-store.ts';

/** The log could not be written, so the change must not be made. */
export class SnapshotLogFault extends FsFault {
  /** What the log said. */
  readonly reason: unknown;

  constructor(shownPath: string, reason: unknown) {
    super('FS_IO_ERROR', `${shownPath} was not changed, because the session log could not be written.`);
    this.reason = reason;
  }
}

/** Whose change it is. */
export type ChangePlace = Pick<EventData['file/snapshot'], 'turn' | 'callId' | 'undo'>;

/** Where the fact is written down. Both throw when the log cannot be written. */
export interface SnapshotLog {
  record(event: EventInput): unknown;
  barrier(): Promise<void>;
}

interface Before {
  readonly state: FileState | null;
  readonly notKept?: NotKept;
}

export class FileSnapshots {
  readonly #store: SnapshotStore;

  constructor(store: SnapshotStore) {
    this.#store = store;
  }

  /**
   * To be awaited right before the change. One call at a time. With `mustKeep` a content that cannot be kept holds the change up.
   *
   * @throws FsFault FS_STALE when the file is not in the expected version; {@link SnapshotLogFault}; file system errors as they
   *   are: the change must not be made then
   */
  async keep(change: FileChange, place: ChangePlace, log: SnapshotLog, mustKeep = false): Promise<void> {
    const before = await this.#before(change);
    if (mustKeep && before.notKept !== undefined) throw new FsFault('FS_IO_ERROR', 'what it holds now could not be kept');
    const directories = before.state === null ? await missingDirectories(change.path) : [];
    const { data } = change;
    const after = data === null ? null : stateOf(data);
    const event: EventInput = {
      type: 'file/snapshot',
      data: {
        ...place,
        path: change.path,
        before: before.state,
        after,
        ...(directories.length === 0 ? {} : { directories }),
        ...(before.notKept === undefined ? {} : { notKept: before.notKept }),
      },
    };
    try {
      log.record(event);
      await log.barrier();
    } catch (error) {
      if (error instanceof Error && error.name === 'AbortError') throw error;
      // In a turn whoever keeps the log has the reason already, and ends the turn with it.
      throw new SnapshotLogFault(change.shownPath, error);
    }
  }

  /** A kept change came out otherwise. @throws what `record` throws */
  noteActual({ path, put, actual }: ActualChange, place: ChangePlace, { record }: Pick<SnapshotLog, 'record'>): void {
    const [before, after] = [stateOf(put), stateOf(actual)];
    record({ type: 'file/snapshot', data: { ...place, path, before, after } });
  }

  async #before({ path, shownPath, expected, before }: FileChange): Promise<Before> {
    if (before !== undefined) return await this.#keep(before, {});
    if (expected === undefined) return { state: null };
    const opened = await openRegularFile(path, shownPath);
    try {
      const { stats } = opened;
      if (versionOf(stats) !== expected) throw staleFault(shownPath);
      const mode = stats.mode & permissionBits;
      const { fileBytes } = this.#store.limits;
      if (stats.size > fileBytes) return { state: { bytes: stats.size, mode }, notKept: 'file-too-large' };
      return await this.#keep(await readWhole(opened, fileBytes, shownPath), { mode });
    } finally {
      await opened.handle.close();
    }
  }

  async #keep(content: Buffer, known: Pick<FileState, 'mode'>): Promise<Before> {
    const hash = contentHash(content);
    const notKept = await this.#store.keep(content, hash);
    return { state: { hash, bytes: content.length, ...known }, ...(notKept === undefined ? {} : { notKept }) };
  }
}

const permissionBits = 0o777;

function stateOf(content: Buffer): FileState {
  return { hash: contentHash(content), bytes: content.length };
}

/** The directories above a path that are not there, outermost first. */
async function missingDirectories(path: string): Promise<string[]> {
  const missing: string[] = [];
  for (let directory = dirname(path); directory !== dirname(directory); directory = dirname(directory)) {
    try {
      await lstat(directory);
      break;
    } catch (error) {
      if (!isMissing(error)) throw error;
      missing.unshift(directory);
    }
  }
  return missing;
}
