/**
 * `write`: puts a whole file in place, atomically. What exists is replaced only when this session has seen what is there.
 */
import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { FileDiff } from '../../shared/render-intents.ts';
import { diffHunks, diffsToMeta } from './diff-hunks.ts';
import { changeDraft } from './draft-view.ts';
import { decidedPath, pathForExecution } from './file-access.ts';
import { versionOf } from './file-observations.ts';
import { FsFault, faultOutcome, isMissing } from './fs-fault.ts';
import { mutateFile } from './mutate-file.ts';
import { appliedChange, intendedChange } from './mutation-view.ts';
import { openRegularFile } from './open-regular-file.ts';
import { failed, succeeded } from './outcome.ts';
import { staleFault } from './replace-file.ts';
import { isWritableText, readWhole } from './text-file.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxContentBytes = 10 * 1024 * 1024;
/** An older content above this size is not compared with the new one. */
const maxDiffBasis = 1024 * 1024;

export interface WriteArgs {
  readonly file_path: string;
  readonly content: string;
}

interface Existing {
  readonly version: string;
  /** `undefined` when it is too large to compare. */
  readonly text: string | undefined;
}

/** What is in place, provided that this session has seen it; `undefined` when there is nothing. */
async function seenContent(path: string, args: WriteArgs, context: ToolContext): Promise<Existing | undefined> {
  try {
    await lstat(path);
  } catch (error) {
    if (isMissing(error)) {
      return undefined;
    }
    throw error;
  }
  const opened = await openRegularFile(path, args.file_path);
  try {
    const version = versionOf(opened.stats);
    requireSeen(context.files.versionSeen(path), version, args.file_path);
    if (opened.stats.size > maxDiffBasis) {
      return { version, text: undefined };
    }
    const bytes = await readWhole(opened, maxDiffBasis, args.file_path);
    return { version, text: bytes.toString('utf8') };
  } finally {
    await opened.handle.close();
  }
}

function requireSeen(seen: string | undefined, current: string, shownPath: string): void {
  if (seen === undefined) {
    throw new FsFault('FS_NOT_OBSERVED', `${shownPath} exists and this session has not read it. Read it first, then write.`);
  }
  if (seen !== current) {
    throw staleFault(shownPath);
  }
}

async function put(args: WriteArgs, context: ToolContext): Promise<ToolOutcome> {
  const data = Buffer.from(args.content, 'utf8');
  if (data.length > maxContentBytes) {
    return failed('FS_TOO_LARGE', `The content is ${data.length} bytes; at most ${maxContentBytes} can be written in one call.`);
  }
  if (!isWritableText(args.content)) {
    return failed('FS_NOT_TEXT', 'The content holds half of a surrogate pair, which UTF-8 cannot express. Send well-formed text.');
  }
  const path = pathForExecution(args, args.file_path, context.cwd);
  const before = await seenContent(path, args, context);
  await mutateFile({ path, shownPath: args.file_path, data, expected: before?.version }, context);
  const verb = before === undefined ? 'Created' : 'Replaced';
  return succeeded(`${verb} ${args.file_path} (${data.length} bytes).`, diffsToMeta(changes(before, args, context.cwd)));
}

function changes(before: Existing | undefined, args: WriteArgs, cwd: string): FileDiff[] {
  const path = resolve(cwd, args.file_path);
  if (before === undefined) {
    return [{ path, oldText: null, newText: args.content }];
  }
  if (before.text === undefined) return [];
  // The same content again: the card must not go on to show it as new.
  if (before.text === args.content) return [{ path, oldText: before.text, newText: args.content }];
  return diffHunks(path, before.text, args.content);
}

async function execute(args: WriteArgs, context: ToolContext): Promise<ToolOutcome> {
  try {
    return await put(args, context);
  } catch (error) {
    return faultOutcome(error, args.file_path, context.cwd);
  }
}

export const writeTool: Tool<WriteArgs> = {
  name: 'write',
  description:
    'Writes a whole file, and makes its directories. A file that exists must have been read by this session, and not have ' +
    'changed since. Use edit to change a part of a file.',
  parameters: {
    type: 'object',
    properties: {
      file_path: { type: 'string', minLength: 1, maxLength: 4096, description: 'Absolute, or relative to the working directory.' },
      content: { type: 'string', description: 'The whole new content, at most 10 MiB.' },
    },
    required: ['file_path', 'content'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: (args, context) => ({ kind: 'write', paths: [decidedPath(args, args.file_path, context.cwd)] }),
  execute,
  presentDraft: (draft, context) => changeDraft(draft, 'Write', 'content', context),
  presentCall: (args, context) => intendedChange('Write', args.file_path, { oldText: null, newText: args.content }, context),
  presentResult: (_args, outcome) => appliedChange(outcome),
};
