/**
 * A file as a tool is about to work on it: what the disk holds, and what the editor makes of it where it has a say. With
 * the check that the session has seen what is there.
 */
import { lstat } from 'node:fs/promises';
import { versionOf } from '../tools/file-observations.ts';
import { FsFault, isMissing } from '../tools/fs-fault.ts';
import { type OpenedFile, openRegularFile } from '../tools/open-regular-file.ts';
import { staleFault } from '../tools/replace-file.ts';
import { readWhole } from '../tools/text-file.ts';
import type { ToolContext } from '../tools/tool.ts';
import { longestClientText } from './client-files.ts';
import type { Counting } from './editor-files.ts';

export type EditorContext = Pick<ToolContext, 'editor' | 'files' | 'signal'>;

export interface CurrentFile {
  /** Of the disk; `undefined` when there is no such file there. */
  readonly version: string | undefined;
  /** What the disk holds, where it was read: never of a file that is too large. */
  readonly bytes: Buffer | undefined;
  readonly counting: Counting;
}

/** The file, open, or `undefined` when there is none. @throws as `openRegularFile` does for what is not a regular file */
export async function openIfThere(path: string, shownPath: string): Promise<OpenedFile | undefined> {
  try {
    await lstat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  return await openRegularFile(path, shownPath);
}

/** The file, open; `undefined` only where there is none on the disk and the editor may have one. @throws as `openRegularFile` does */
export async function openCounting(
  path: string,
  shownPath: string,
  { editor }: Pick<EditorContext, 'editor'>,
): Promise<OpenedFile | undefined> {
  return editor?.covers(path) === true ? await openIfThere(path, shownPath) : await openRegularFile(path, shownPath);
}

/**
 * Looks at the disk, and asks the editor where it has a say. Leaves the handle open. `undefined` when neither has such a file.
 *
 * @param mostBytes a larger file of the disk is not read
 * @throws FsFault; file system errors as they are; the signal's reason when it aborts
 */
export async function currentFile(
  opened: OpenedFile | undefined,
  { path, shownPath, mostBytes }: { readonly path: string; readonly shownPath: string; readonly mostBytes: number },
  context: EditorContext,
): Promise<CurrentFile | undefined> {
  const version = opened === undefined ? undefined : versionOf(opened.stats);
  const bytes = opened === undefined || opened.stats.size > mostBytes ? undefined : await readWhole(opened, mostBytes, shownPath);
  const counting = await countingOf({ path, opened, version, bytes }, context);
  return opened === undefined && counting.source === 'disk' ? undefined : { version, bytes, counting };
}

interface OnDisk {
  readonly path: string;
  readonly opened: OpenedFile | undefined;
  readonly version: string | undefined;
  readonly bytes: Buffer | undefined;
}

const diskAlone: Counting = { source: 'disk', isDisputed: false };

async function countingOf({ path, opened, version, bytes }: OnDisk, { editor, signal }: EditorContext): Promise<Counting> {
  if (editor === undefined || !editor.covers(path)) return diskAlone;
  if (opened === undefined || version === undefined) return await editor.counting(path, undefined, signal);
  // What no editor would hold as text is the disk's alone.
  const text = bytes === undefined || bytes.length > longestClientText ? undefined : decoded(bytes);
  return text === undefined ? diskAlone : await editor.counting(path, { version, changedAt: opened.stats.mtimeMs, text }, signal);
}

function decoded(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Another encoding: to compare it with an editor's text would say nothing.
    return undefined;
  }
}

/** Before anything is read of it. @throws FsFault FS_NOT_OBSERVED with `unseen` as its text */
export function requireObserved(path: string, unseen: string, { files }: Pick<EditorContext, 'files'>): void {
  if (files.seen(path) === undefined) throw new FsFault('FS_NOT_OBSERVED', unseen);
}

/** @throws FsFault FS_NOT_OBSERVED with `unseen` as its text, FS_STALE */
export function requireSeen(
  file: CurrentFile,
  place: { readonly path: string; readonly shownPath: string },
  unseen: string,
  context: EditorContext,
): void {
  const seen = context.files.seen(place.path);
  if (seen === undefined) throw new FsFault('FS_NOT_OBSERVED', unseen);
  const { counting, version } = file;
  const isSameText = counting.hash !== undefined && counting.hash === seen.textHash;
  const isSameVersion = counting.source === 'disk' && version === seen.version;
  if (!isSameText && !isSameVersion) throw staleFault(place.shownPath);
}

/** Remembers the file as seen in what counts of it. */
export function observeCurrent(path: string, { version, counting }: CurrentFile, { files }: EditorContext): void {
  // A version of the disk whose text does not count was not seen.
  files.observe(path, counting.source === 'disk' ? (version ?? unsavedVersion) : unsavedVersion, counting.hash);
}

/** Stands in the place of a version of the disk, and equals none. */
export const unsavedVersion = 'unsaved';

export const unsavedNote = '(this is the unsaved text of the editor; the disk holds another one)';
export const disputedNote =
  '(this is the file of the disk, which has changed meanwhile; the editor holds another, unsaved text, which is left alone)';
