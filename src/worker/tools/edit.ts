/**
 * `edit`: replaces exact text in a file that this session has read and that has not changed since, atomically.
 */
import { resolve } from 'node:path';
import type { PresentContext, ToolCallView } from '../../shared/render-intents.ts';
import { closestText } from './closest-text.ts';
import { diffHunks, diffsToMeta } from './diff-hunks.ts';
import { changeDraft } from './draft-view.ts';
import { applyEdit } from './edit-text.ts';
import type { EditResult } from './edit-text.ts';
import { decidedPath, pathForExecution } from './file-access.ts';
import { faultOutcome, missingFile } from './fs-fault.ts';
import { mutateFile } from './mutate-file.ts';
import { appliedChange, intendedChange } from './mutation-view.ts';
import { type CurrentFile, currentFile, openCounting, requireObserved, requireSeen } from '../workspace/current-text.ts';
import { failed, succeeded, withNote } from './outcome.ts';
import { decodeText, encodeText, isWritableText, tooLarge } from './text-file.ts';
import type { TextContent } from './text-file.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxFileBytes = 10 * 1024 * 1024;

export interface EditArgs {
  readonly file_path: string;
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

interface SeenText {
  readonly file: CurrentFile;
  readonly content: TextContent;
}

/** The file's text, provided that this session has read this very version. */
async function seenText(path: string, args: EditArgs, context: ToolContext): Promise<SeenText> {
  const shownPath = args.file_path;
  const opened = await openCounting(path, shownPath, context);
  try {
    const unseen = `This session has not read ${shownPath}. Read it first, then edit.`;
    if (opened !== undefined) {
      requireObserved(path, unseen, context);
    }
    const file = await currentFile(opened, { path, shownPath, mostBytes: maxFileBytes }, context);
    if (file === undefined) {
      throw missingFile();
    }
    requireSeen(file, { path, shownPath }, unseen, context);
    if (file.counting.source === 'editor') {
      return { file, content: { hasBom: false, raw: file.counting.text } };
    }
    if (file.bytes === undefined) {
      throw tooLarge(shownPath, maxFileBytes);
    }
    return { file, content: decodeText(file.bytes, shownPath) };
  } finally {
    await opened?.handle.close();
  }
}

/** Faults of the arguments themselves, told before any file is touched. */
function argumentFault(args: EditArgs): ToolOutcome | undefined {
  if (args.old_string === args.new_string) {
    return failed('INVALID_ARGS', 'old_string and new_string are the same, so there is nothing to change.');
  }
  if (!isWritableText(args.old_string) || !isWritableText(args.new_string)) {
    return failed('FS_NOT_TEXT', 'The text holds half of a surrogate pair, which UTF-8 cannot express. Send well-formed text.');
  }
  return undefined;
}

function refusal(result: EditResult & { ok: false }, args: EditArgs, content: TextContent): ToolOutcome {
  if (result.reason === 'too-large') {
    return failed('FS_TOO_LARGE', `The edit would make ${args.file_path} larger than can be written in one call.`);
  }
  if (result.reason === 'ambiguous') {
    const lines = result.lines.join(', ') + (result.matches > result.lines.length ? ', …' : '');
    const found = `old_string matches ${result.matches} places in ${args.file_path} (lines ${lines}).`;
    return failed('EDIT_AMBIGUOUS', `${found} Add text around it until it is unique, or set replace_all.`);
  }
  const hint = closestText(content.raw.replaceAll('\r\n', '\n'), args.old_string.replaceAll('\r\n', '\n'));
  const found = `old_string was not found in ${args.file_path}.${hint === undefined ? '' : ` ${hint}`}`;
  return failed('EDIT_NOT_FOUND', `${found} Read the place again and copy it exactly.`);
}

async function change(args: EditArgs, context: ToolContext): Promise<ToolOutcome> {
  const fault = argumentFault(args);
  if (fault !== undefined) {
    return fault;
  }
  const path = pathForExecution(args, args.file_path, context.cwd);
  const { file, content } = await seenText(path, args, context);
  if (args.old_string === '' && content.raw !== '') {
    return failed('INVALID_ARGS', 'old_string is empty, but the file is not. Name the text to replace, or use write for the whole file.');
  }
  const edit = { oldString: args.old_string, newString: args.new_string, replaceAll: args.replace_all === true };
  const result = applyEdit(content.raw, edit);
  if (!result.ok) {
    return refusal(result, args, content);
  }
  const data = encodeText({ hasBom: content.hasBom, raw: result.raw });
  const end = await mutateFile({ path, shownPath: args.file_path, data, expected: file.version, current: file }, context);
  const places = result.replacements === 1 ? '1 place' : `${result.replacements} places`;
  const diffs = diffHunks(resolve(context.cwd, args.file_path), result.before, end.text ?? result.after);
  return succeeded(withNote(`Edited ${args.file_path} in ${places}.`, end.note), diffsToMeta(diffs));
}

async function execute(args: EditArgs, context: ToolContext): Promise<ToolOutcome> {
  try {
    return await change(args, context);
  } catch (error) {
    return faultOutcome(error, args.file_path, context.cwd);
  }
}

function presentCall(args: EditArgs, context: PresentContext): ToolCallView {
  return intendedChange('Edit', args.file_path, { oldText: args.old_string, newText: args.new_string }, context);
}

export const editTool: Tool<EditArgs> = {
  name: 'edit',
  description:
    'Replaces exact text in a file that this session has read. old_string must match exactly one place, blanks and ' +
    'indentation included, without the line numbers that read shows; or set replace_all. Line endings are kept as the file has them.',
  parameters: {
    type: 'object',
    properties: {
      file_path: { type: 'string', minLength: 1, maxLength: 4096, description: 'Absolute, or relative to the working directory.' },
      old_string: { type: 'string', description: 'The text to replace. Empty only for an empty file.' },
      new_string: { type: 'string', description: 'The text to put in its place.' },
      replace_all: { type: 'boolean', description: 'Replace every match instead of requiring exactly one.' },
    },
    required: ['file_path', 'old_string', 'new_string'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: (args, context) => ({ kind: 'write', paths: [decidedPath(args, args.file_path, context.cwd)] }),
  execute,
  presentDraft: (draft, context) => changeDraft(draft, 'Edit', 'new_string', context),
  presentCall,
  presentResult: (_args, outcome) => appliedChange(outcome),
};
