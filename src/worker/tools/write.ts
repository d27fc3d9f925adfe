/**
 * `write`: puts a whole file in place, atomically. What exists is replaced only when this session has seen what is there.
 */
import { resolve } from 'node:path';
import type { FileDiff } from '../../shared/render-intents.ts';
import { diffHunks, diffsToMeta } from './diff-hunks.ts';
import { changeDraft } from './draft-view.ts';
import { decidedPath, pathForExecution } from './file-access.ts';
import { faultOutcome } from './fs-fault.ts';
import { mutateFile } from './mutate-file.ts';
import { appliedChange, intendedChange } from './mutation-view.ts';
import { type CurrentFile, currentFile, openIfThere, requireObserved, requireSeen } from '../workspace/current-text.ts';
import { failed, succeeded, withNote } from './outcome.ts';
import { isWritableText } from './text-file.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxContentBytes = 10 * 1024 * 1024;
/** An older content above this size is not compared with the new one, and not with an editor's. */
const maxDiffBasis = 1024 * 1024;

export interface WriteArgs {
  readonly file_path: string;
  readonly content: string;
}

/** What is in place, provided that this session has seen it; `undefined` when there is nothing. */
async function seenContent(path: string, args: WriteArgs, context: ToolContext): Promise<CurrentFile | undefined> {
  const shownPath = args.file_path;
  const opened = await openIfThere(path, shownPath);
  try {
    const unseen = `${shownPath} exists and this session has not read it. Read it first, then write.`;
    if (opened !== undefined) {
      requireObserved(path, unseen, context);
    }
    const file = await currentFile(opened, { path, shownPath, mostBytes: maxDiffBasis }, context);
    if (file !== undefined) {
      requireSeen(file, { path, shownPath }, unseen, context);
    }
    return file;
  } finally {
    await opened?.handle.close();
  }
}

const nothing: Pick<CurrentFile, 'bytes' | 'counting'> = { bytes: undefined, counting: { source: 'disk', isDisputed: false } };

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
  const end = await mutateFile({ path, shownPath: args.file_path, data, expected: before?.version, current: before ?? nothing }, context);
  const verb = before === undefined ? 'Created' : 'Replaced';
  const diffs = changes(before, { ...args, content: end.text ?? args.content }, context.cwd);
  return succeeded(withNote(`${verb} ${args.file_path} (${data.length} bytes).`, end.note), diffsToMeta(diffs));
}

function changes(before: CurrentFile | undefined, args: WriteArgs, cwd: string): FileDiff[] {
  const path = resolve(cwd, args.file_path);
  if (before === undefined) {
    return [{ path, oldText: null, newText: args.content }];
  }
  const text = before.counting.source === 'editor' ? before.counting.text : before.bytes?.toString('utf8');
  if (text === undefined) return [];
  // The same content again: the card must not go on to show it as new.
  if (text === args.content) return [{ path, oldText: text, newText: args.content }];
  return diffHunks(path, text, args.content);
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
