/**
 * Puts a new text in place through the client's editor, so that it sees the change as its own, and then looks at what the
 * disk has: that, and not the client's word, is what the session goes on with.
 */
import { dirname } from 'node:path';
import { anchorDirectory } from '../tools/anchored-directory.ts';
import { versionOf } from '../tools/file-observations.ts';
import { FsFault } from '../tools/fs-fault.ts';
import { staleFault } from '../tools/replace-file.ts';
import { currentFile, type EditorContext, openIfThere, unsavedVersion } from './current-text.ts';
import { longestClientText } from './client-files.ts';
import { type Counting, textHash } from './editor-files.ts';

export interface EditorChange {
  /** Canonical. */
  readonly path: string;
  readonly shownPath: string;
  readonly data: Buffer;
  /** The version on the disk that must be in place, or `undefined` when there must be no file. */
  readonly expected: string | undefined;
  /** What counted of the file before. */
  readonly counting: Counting;
}

/**
 * `text` is what is in place when that is not what was to be put there; `saved` the same where only line ends or a BOM differ.
 * `note` is for the model.
 */
export interface EditorEnd {
  readonly text?: string;
  readonly saved?: string;
  readonly note?: string;
}

/**
 * Whether the change may go that way: a text that the editor and the disk do not dispute. Line ends and byte order marks that
 * an editor might not keep are written to the disk, unless there is unsaved text that this would be in the way of.
 *
 * @param before what the disk holds; `undefined` when that is nothing, or was not read
 */
export function mayGoThroughEditor({ path, data, counting }: EditorChange, before: Buffer | undefined, { editor }: EditorContext): boolean {
  if (editor?.covers(path) !== true || data.length > longestClientText || data.includes(0)) return false;
  if (counting.source === 'editor') return true;
  return !counting.isDisputed && isPlain(data) && (before === undefined || isPlain(before));
}

function isPlain(bytes: Buffer): boolean {
  return !bytes.includes('\r\n') && !(bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf);
}

/**
 * Hands the text to the client. `undefined` when it did not take it and the disk can be written instead.
 *
 * @throws FsFault FS_STALE, FS_PATH_CHANGED; FS_IO_ERROR when the client did not take the text over unsaved one, or when it is
 *   not known whether it did; the signal's reason when it aborts
 */
export async function putThroughEditor(change: EditorChange, context: EditorContext): Promise<EditorEnd | undefined> {
  const { editor, signal, files } = context;
  const { path, shownPath, counting } = change;
  if (editor === undefined) return undefined;
  // The directories that are missing; and proof that the path still leads where it led when it was decided on.
  await (await anchorDirectory(dirname(path), shownPath)).close();
  await requireVersion(change);
  const text = change.data.toString('utf8');
  // Whatever comes of it, what was seen before is not what is there afterwards.
  files.forget(path);
  const written = await editor.client.write(path, text, signal);
  if (written.kind === 'refused') {
    if (counting.source === 'disk') return undefined;
    throw new FsFault(
      'FS_IO_ERROR',
      `${shownPath} has unsaved changes in the editor, which did not take the new text (${written.why}). Nothing was written.`,
    );
  }
  return await outcomeOf(change, { text, isKnown: written.kind === 'written' }, context);
}

async function requireVersion({ path, shownPath, expected }: EditorChange): Promise<void> {
  const opened = await openIfThere(path, shownPath);
  await opened?.handle.close();
  if ((opened === undefined ? undefined : versionOf(opened.stats)) !== expected) throw staleFault(shownPath);
}

async function outcomeOf(
  { path, shownPath }: EditorChange,
  { text, isKnown }: { readonly text: string; readonly isKnown: boolean },
  context: EditorContext,
): Promise<EditorEnd> {
  const { files, editor } = context;
  const opened = await openIfThere(path, shownPath);
  try {
    const now = await currentFile(opened, { path, shownPath, mostBytes: longestClientText }, context);
    const wanted = textHash(text);
    const onDisk = now?.bytes?.toString('utf8');
    if (onDisk !== undefined && textHash(onDisk) === wanted) {
      editor?.agree(path, now?.version);
      files.observe(path, now?.version ?? unsavedVersion, wanted);
      return onDisk === text ? {} : { saved: onDisk };
    }
    if (now?.counting.source === 'editor' && now.counting.hash === wanted) {
      files.observe(path, unsavedVersion, wanted);
      return { note: 'The editor holds the text and has not saved it yet: commands do not see it before that.' };
    }
    if (!isKnown || now === undefined) {
      throw new FsFault(
        'FS_IO_ERROR',
        `The editor did not confirm the change of ${shownPath}, and the file is not what it should be. Read it before you go on.`,
      );
    }
    const actual = now.counting.source === 'editor' ? now.counting.text : onDisk;
    const note = 'The editor changed the text while saving it, as formatters do: read the file before you change it again.';
    return { note, ...(actual === undefined ? {} : { text: actual }) };
  } finally {
    await opened?.handle.close();
  }
}
