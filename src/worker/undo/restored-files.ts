/**
 * Puts files back to what they held, one by one, and says of each what became of it. A file that is not what the log left is
 * not touched, unless that was asked for; whatever is overwritten is kept first.
 */
import type { FileState } from '../../shared/undo-events.ts';
import { relativePath } from '../display/display-path.ts';
import { resolvePath } from '../tools/file-access.ts';
import { faultOutcome } from '../tools/fs-fault.ts';
import { mutateFile, type MutationContext } from '../tools/mutate-file.ts';
import { removeEmptyDirectory, removeFile } from '../tools/remove-file.ts';
import { type CurrentFile, currentFile, openIfThere } from '../workspace/current-text.ts';
import { SnapshotLogFault } from './file-snapshots.ts';
import { isSameState, type PlannedFile } from './planned-files.ts';
import { contentHash, type SnapshotStore } from './snapshot-store.ts';

export type RestoreVerdict = { readonly kind: 'allow' } | { readonly kind: 'ask' | 'deny'; readonly why: string };

export interface FileOutcome {
  /** Canonical. */
  readonly path: string;
  /** `unchanged`: it is already what it should be. */
  readonly outcome: 'restored' | 'removed' | 'unchanged' | 'left';
  /** Why it was left, as the end of a sentence about the file. */
  readonly why?: string;
  /** Left for a reason that `force` does away with. */
  readonly canForce?: boolean;
}

export interface RestoreParts {
  readonly cwd: string;
  readonly store: SnapshotStore;
  /** What the permissions of the session say about writing this path. Never rejects. */
  readonly mayWrite: (path: string) => Promise<RestoreVerdict>;
  readonly context: MutationContext;
  readonly force: boolean;
}

/** What is at a path now. */
interface Present {
  readonly state: FileState | null;
  readonly current: CurrentFile | undefined;
}

/**
 * Contents first, then removals, then the directories that were made for files that are gone.
 *
 * @throws the reason of `context.signal`, between two files; what is not a matter of one file, as a log that cannot be written
 */
export async function restoreFiles(planned: readonly PlannedFile[], parts: RestoreParts): Promise<FileOutcome[]> {
  const outcomes: FileOutcome[] = [];
  const gone: PlannedFile[] = [];
  for (const file of [...planned].sort((a, b) => Number(a.target === null) - Number(b.target === null))) {
    parts.context.signal.throwIfAborted();
    const outcome = await restoreFile(file, parts);
    outcomes.push(outcome);
    if (file.target === null && outcome.outcome !== 'left') gone.push(file);
  }
  const directories = [...new Set(gone.flatMap((file) => file.directories))].sort((a, b) => b.length - a.length);
  for (const directory of directories) await removeEmptyDirectory(directory);
  return outcomes;
}

async function restoreFile(file: PlannedFile, parts: RestoreParts): Promise<FileOutcome> {
  const { path, target } = file;
  const { cwd, store, context } = parts;
  const shownPath = relativePath(path, cwd);
  try {
    if (resolvePath(path, cwd) !== path) return left(path, 'a link stands in its way now');
    const present = await lookAt(path, shownPath, parts);
    if (isWhatItShouldBe(present.state, target)) return { path, outcome: 'unchanged' };
    const obstacle = await obstacleTo(file, present, parts);
    if (obstacle !== undefined) return obstacle;
    const { current } = present;
    const expected = current?.version;
    if (target === null) {
      if (current?.counting.source === 'editor' || expected === undefined) return left(path, 'the editor holds unsaved text of it');
      await removeFile({ path, shownPath, expected }, context);
      return { path, outcome: 'removed' };
    }
    const data = target.hash === undefined ? undefined : await store.read(target.hash);
    if (data === undefined) return left(path, 'its kept content is gone or damaged');
    await mutateFile({ path, shownPath, data, expected, mode: target.mode, ...(current === undefined ? {} : { current }) }, context);
    return { path, outcome: 'restored' };
  } catch (error) {
    if (error instanceof SnapshotLogFault) throw error.reason;
    if (context.signal.aborted) throw error;
    return left(
      path,
      faultOutcome(error, 'it', cwd)
        .text.replace(/^Error: /, '')
        .replace(/\.$/, ''),
    );
  }
}

/** Why the file is to be left as it is; `undefined` when it may be changed. */
async function obstacleTo(file: PlannedFile, present: Present, { mayWrite, force, store }: RestoreParts): Promise<FileOutcome | undefined> {
  const { path, notKept } = file;
  if (notKept !== undefined) return left(path, `what it held was not kept (${notKeptWords[notKept]})`);
  const verdict = await mayWrite(path);
  if (verdict.kind === 'deny') return left(path, verdict.why);
  if (!force) {
    if (verdict.kind === 'ask') return left(path, verdict.why, true);
    if (!file.left.some((state) => isSameState(state, present.state))) return left(path, 'it has changed since', true);
    if (file.mixed) return left(path, 'somebody else has changed it, too, in between', true);
  }
  // Nothing is overwritten that could not be brought back.
  const tooLarge = present.state !== null && present.state.bytes > store.limits.fileBytes;
  return tooLarge ? left(path, 'what it holds now is too large to be kept') : undefined;
}

const notKeptWords = {
  'file-too-large': 'it was too large',
  'session-full': "the session's room for that was used up",
  disk: 'the disk did not take it',
} as const;

/** The editor's text, where that counts, is what is there. */
async function lookAt(path: string, shownPath: string, { store, context }: RestoreParts): Promise<Present> {
  const opened = await openIfThere(path, shownPath);
  try {
    const current = await currentFile(opened, { path, shownPath, mostBytes: store.limits.fileBytes }, context);
    if (current === undefined) return { state: null, current };
    const { bytes, counting } = current;
    const content = counting.source === 'editor' ? Buffer.from(counting.text, 'utf8') : bytes;
    if (content === undefined) return { state: { bytes: opened?.stats.size ?? 0 }, current };
    return { state: { hash: contentHash(content), bytes: content.length }, current };
  } finally {
    await opened?.handle.close();
  }
}

function isWhatItShouldBe(present: FileState | null, target: FileState | null): boolean {
  if (present === null || target === null) return present === target;
  return present.hash !== undefined && present.hash === target.hash;
}

function left(path: string, why: string, canForce = false): FileOutcome {
  return { path, outcome: 'left', why, ...(canForce ? { canForce } : {}) };
}
