/**
 * The one place where tools change a file's content. Whoever must see a change, or keep what was there before, stands here.
 */
import type { CurrentFile } from '../workspace/current-text.ts';
import { textHash } from '../workspace/editor-files.ts';
import { type EditorEnd, mayGoThroughEditor, putThroughEditor } from '../workspace/put-through-editor.ts';
import { replaceFile } from './replace-file.ts';
import type { ToolContext } from './tool.ts';

export interface FileMutation {
  /** Canonical: the path that was decided on. */
  readonly path: string;
  /** As the call named it, for words to the model. */
  readonly shownPath: string;
  /** The whole new content. */
  readonly data: Buffer;
  /** The version on the disk that must be in place, or `undefined` when there must be no file. */
  readonly expected: string | undefined;
  /** Permission bits of a file that is not there yet. */
  readonly mode?: number | undefined;
  /** What is replaced, as far as the client's editor was asked about it; without it the disk alone is written. */
  readonly current?: Pick<CurrentFile, 'bytes' | 'counting'>;
}

export type MutationContext = Pick<ToolContext, 'editor' | 'files' | 'signal' | 'keepBefore' | 'noteActual'>;

/**
 * Puts the new content in place and remembers it as seen by the session; through the client's editor where that has a say. The
 * old content stays when this throws, unless the text of the fault says otherwise.
 *
 * @throws FsFault as `replaceFile` and `putThroughEditor` do; file system errors as they are
 */
export async function mutateFile(mutation: FileMutation, context: MutationContext): Promise<EditorEnd> {
  const { current, ...change } = mutation;
  const { editor } = context;
  const unsaved = current?.counting.source === 'editor' ? { before: Buffer.from(current.counting.text, 'utf8') } : {};
  await context.keepBefore?.({ ...change, ...unsaved });
  let note: EditorEnd = {};
  if (current !== undefined) {
    const edit = { ...change, counting: current.counting };
    if (mayGoThroughEditor(edit, current.bytes, context)) {
      const end = await putThroughEditor(edit, context);
      const actual = end?.text ?? end?.saved;
      if (actual !== undefined) context.noteActual?.({ path: change.path, put: change.data, actual: Buffer.from(actual, 'utf8') });
      if (end !== undefined) return end;
      note = { note: 'The editor did not take the change; it was written to the disk.' };
    }
  }
  const version = await replaceFile({ ...change, signal: context.signal });
  const isAsked = editor?.covers(change.path) === true;
  if (isAsked && current !== undefined) editor.noteDiskWrite(change.path, version, current.counting);
  context.files.observe(change.path, version, isAsked ? textHash(change.data.toString('utf8')) : undefined);
  return note;
}
