/**
 * `read`: a window of a text file, numbered, in memory that does not grow with the file.
 *
 * A read is what authorises a later write or edit: it remembers which version of the file this session has seen.
 */
import type { JsonObject } from '../../shared/errors.ts';
import type { PresentContext, ToolCallView } from '../../shared/render-intents.ts';
import { resolve } from 'node:path';
import { displayPath } from '../display/display-path.ts';
import { fileDraft } from './draft-view.ts';
import { decidedPath, pathForExecution } from './file-access.ts';
import { longestClientText } from '../workspace/client-files.ts';
import { type CurrentFile, currentFile, disputedNote, observeCurrent, openCounting, unsavedNote } from '../workspace/current-text.ts';
import { faultOutcome, missingFile } from './fs-fault.ts';
import { LineWindow } from './line-window.ts';
import type { OpenedFile } from './open-regular-file.ts';
import { failed, succeeded, textView, withNote } from './outcome.ts';
import { probeBytes, requireText } from './text-file.ts';
import { titleLine } from '../display/title-line.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxLines = 2000;
const maxLineChars = 2000;
const maxWindowBytes = 51_200;
/** From this size on, lines after the window are not counted: the rest of the file is left alone. */
const streamFrom = 10 * 1024 * 1024;
const chunkBytes = 256 * 1024;

export interface ReadArgs {
  readonly file_path: string;
  readonly offset?: number;
  readonly limit?: number;
}

interface Scan {
  readonly window: LineWindow;
  /** False when the scan stopped at the end of the window. */
  readonly sawEnd: boolean;
}

function windowFor(args: ReadArgs): LineWindow {
  return new LineWindow({
    firstLine: args.offset ?? 1,
    maxLines: Math.min(args.limit ?? maxLines, maxLines),
    maxLineChars,
    maxBytes: maxWindowBytes,
  });
}

async function scan(opened: OpenedFile, args: ReadArgs, context: ToolContext): Promise<Scan> {
  const window = windowFor(args);
  // The probe must see its whole head at once, and reads may be short.
  const chunk = Buffer.allocUnsafe(Math.max(probeBytes, Math.min(chunkBytes, opened.stats.size)) + 1);
  let filled = 0;
  let probed = false;
  for (;;) {
    context.signal.throwIfAborted();
    const { bytesRead } = await opened.handle.read(chunk, filled, chunk.length - filled);
    filled += bytesRead;
    if (!probed && (bytesRead === 0 || filled >= probeBytes)) {
      requireText(chunk.subarray(0, filled), args.file_path);
      probed = true;
    }
    if (probed) {
      window.push(chunk.subarray(0, filled));
      filled = 0;
    }
    if (bytesRead === 0) {
      window.end();
      return { window, sawEnd: true };
    }
    if (window.full && opened.stats.size >= streamFrom) {
      return { window, sawEnd: false };
    }
  }
}

/** What the model reads: the lines, then where they stand in the file and how to go on. */
function describe(result: Scan, args: ReadArgs): ToolOutcome {
  const { window, sawEnd } = result;
  const first = args.offset ?? 1;
  const last = first + window.lines.length - 1;
  if (window.lines.length === 0) {
    if (window.linesSeen === 0) {
      return succeeded(`(${args.file_path} is empty)`);
    }
    return failed('FS_OUT_OF_RANGE', `${args.file_path} has ${window.linesSeen} lines; offset ${first} is beyond its end.`);
  }
  const total = sawEnd ? `of ${window.linesSeen}` : 'of a large file';
  const more = !sawEnd || last < window.linesSeen;
  const next = more ? `; read on with offset=${last + 1}` : '; end of file';
  return succeeded(`${window.lines.join('\n')}\n\n(lines ${first} - ${last} ${total}${next})`);
}

/** An editor's text is at hand; the disk's is read as far as the window needs it. */
async function scanCounting(
  { counting }: CurrentFile,
  opened: OpenedFile | undefined,
  args: ReadArgs,
  context: ToolContext,
): Promise<Scan> {
  if (counting.source === 'disk' && opened !== undefined) {
    return await scan(opened, args, context);
  }
  const window = windowFor(args);
  window.push(Buffer.from(counting.source === 'editor' ? counting.text : '', 'utf8'));
  window.end();
  return { window, sawEnd: true };
}

/** Nothing is read twice where the client has no say. */
function mostCompared(path: string, { editor }: ToolContext): number {
  return editor?.covers(path) === true ? longestClientText : -1;
}

function withCountingNote(outcome: ToolOutcome, { counting }: CurrentFile): ToolOutcome {
  if (counting.source === 'editor') return { ...outcome, text: withNote(outcome.text, unsavedNote) };
  return counting.isDisputed ? { ...outcome, text: withNote(outcome.text, disputedNote) } : outcome;
}

async function execute(args: ReadArgs, context: ToolContext): Promise<ToolOutcome> {
  try {
    const path = pathForExecution(args, args.file_path, context.cwd);
    const opened = await openCounting(path, args.file_path, context);
    try {
      const file = await currentFile(opened, { path, shownPath: args.file_path, mostBytes: mostCompared(path, context) }, context);
      if (file === undefined) {
        throw missingFile();
      }
      const result = await scanCounting(file, opened, args, context);
      // The version at open: should the file change while it is read, a later edit is refused as stale.
      observeCurrent(path, file, context);
      return withCountingNote(describe(result, args), file);
    } finally {
      await opened?.handle.close();
    }
  } catch (error) {
    return faultOutcome(error, args.file_path, context.cwd);
  }
}

function windowText(args: ReadArgs): string {
  const { offset, limit } = args;
  if (offset === undefined && limit === undefined) {
    return '';
  }
  const first = offset ?? 1;
  return limit === undefined ? ` (from line ${first})` : ` (${first} - ${first + limit - 1})`;
}

function presentCall(args: ReadArgs, context: PresentContext): ToolCallView {
  const rawInput: JsonObject = { ...args };
  return {
    card: 'generic',
    title: titleLine(`Read ${displayPath(args.file_path, context.cwd)}${windowText(args)}`),
    kind: 'read',
    rawInput,
    locations: [{ path: resolve(context.cwd, args.file_path), line: args.offset ?? 1 }],
  };
}

export const readTool: Tool<ReadArgs> = {
  name: 'read',
  description:
    'Reads a text file. Gives numbered lines ("12<TAB>text"; the number is not part of the file), at most 2000 lines or 50 KB, ' +
    'then says where they stand and how to read on. Use offset and limit for a part of a large file. A file must be read ' +
    'before it is changed with write or edit.',
  parameters: {
    type: 'object',
    properties: {
      file_path: { type: 'string', minLength: 1, maxLength: 4096, description: 'Absolute, or relative to the working directory.' },
      offset: { type: 'integer', minimum: 1, description: 'First line to read, counted from 1.' },
      limit: { type: 'integer', minimum: 1, description: 'How many lines to read, at most 2000.' },
    },
    required: ['file_path'],
    additionalProperties: false,
  },
  isParallelSafe: () => true,
  access: (args, context) => ({ kind: 'read', paths: [decidedPath(args, args.file_path, context.cwd)] }),
  execute,
  presentDraft: (draft, context) => fileDraft(draft, 'Read', 'read', context),
  presentCall,
  presentResult: (_args, outcome) => textView(outcome),
};
