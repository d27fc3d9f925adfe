/**
 * The one place where tools change a file's content. Whoever must see a change, or keep what was there before, stands here.
 */
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
}

/**
 * Puts the new content in place and remembers it as seen by the session. The old content stays when this throws.
 *
 * @throws FsFault as `replaceFile` does; file system errors as they are
 */
export async function mutateFile(mutation: FileMutation, context: Pick<ToolContext, 'files' | 'signal' | 'keepBefore'>): Promise<void> {
  await context.keepBefore?.(mutation);
  const version = await replaceFile({ ...mutation, signal: context.signal });
  context.files.observe(mutation.path, version);
}
