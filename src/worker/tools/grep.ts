/**
 * `grep`: lines that match a regular expression, by ripgrep, whose engine takes linear time whatever the pattern is.
 */
import { resolve } from 'node:path';
import type { RunResult } from '../../shared/broker-protocol.ts';
import type { PresentContext, ToolCallView } from '../../shared/render-intents.ts';
import { displayPath, relativePath } from '../display/display-path.ts';
import { searchDraft } from './draft-view.ts';
import { decidedPath } from './file-access.ts';
import { faultOutcome } from './fs-fault.ts';
import { failed, succeeded, textView } from './outcome.ts';
import { complaint, runRipgrep } from './ripgrep.ts';
import { countLeftOut, leavesOut, leftOutOptions } from './left-out-files.ts';
import { openSearchRoot } from './search-root.ts';
import type { SearchRoot } from './search-root.ts';
import { titleLine } from '../display/title-line.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxMatches = 250;
const maxLineBytes = 2000;
const maxResultBytes = 51_200;
/** Head and tail together; the head alone holds more than 250 of the longest lines with the longest paths. */
const keepBytes = 4 * 1024 * 1024;
/** Stands between line number and text; it cannot be part of a number. */
const fieldSeparator = '\u0001';

export interface GrepArgs {
  readonly pattern: string;
  readonly path?: string;
  readonly include?: string;
}

interface Match {
  /** Absolute. */
  readonly path: string;
  readonly line: string;
  readonly text: string;
}

/** Records `path NUL line SEPARATOR text`; ripgrep reads the escape of the separator itself. */
const outputOptions = [
  '--no-heading',
  '--with-filename',
  '--line-number',
  '--null',
  '--color=never',
  '--sort=path',
  '--field-match-separator=\\x01',
  `--max-count=${maxMatches + 1}`,
  `--max-columns=${maxLineBytes}`,
  '--max-columns-preview',
];

/** Matches in the order they were printed. Lines of another shape (a note about a binary file, the mark of a cut) are left out. */
function parseMatches(output: string, root: SearchRoot): Match[] {
  const matches: Match[] = [];
  for (const record of output.split('\n')) {
    const pathEnd = record.indexOf('\0');
    const lineEnd = record.indexOf(fieldSeparator, pathEnd);
    const line = record.slice(pathEnd + 1, lineEnd);
    if (pathEnd <= 0 || lineEnd === -1 || !/^\d+$/.test(line)) {
      continue;
    }
    const path = root.found(record.slice(0, pathEnd));
    // The options are coarser than the rule.
    if (leavesOut(root, path)) {
      continue;
    }
    matches.push({ path, line, text: record.slice(lineEnd + 1).replace(/\r$/, '') });
    if (matches.length > maxMatches) {
      break;
    }
  }
  return matches;
}

/** `path:line:text`, bounded in count and bytes, with a word on what is missing. */
function report(matches: readonly Match[], notes: readonly string[], cwd: string): ToolOutcome {
  const lines: string[] = [];
  let bytes = 0;
  for (const match of matches.slice(0, maxMatches)) {
    const line = `${relativePath(match.path, cwd)}:${match.line}:${match.text}`;
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > maxResultBytes && lines.length > 0) {
      break;
    }
    lines.push(line);
  }
  const cut = lines.length < matches.length ? [`(only the first ${lines.length} matches are shown; narrow the pattern or the path)`] : [];
  const tail = [...cut, ...notes];
  return succeeded(tail.length === 0 ? lines.join('\n') : `${lines.join('\n')}\n\n${tail.join('\n')}`);
}

/** What an empty answer means: no match, or a fault that must not be taken for one. */
function withoutMatches(result: RunResult, notes: readonly string[]): ToolOutcome {
  if (result.timedOut) {
    return failed('SEARCH_TIMEOUT', 'The search took longer than 30 s. Give a path or an include pattern.');
  }
  const fault = complaint(result);
  if (result.exitCode === 0 || result.exitCode === 1) {
    const faults = fault === '' ? [] : [`(some files could not be searched: ${fault})`];
    return succeeded(['No matches.', ...notes, ...faults].join('\n'));
  }
  if (/regex parse error|regex could not be compiled|literal .* is not allowed|compiled regex exceeds/i.test(fault)) {
    return failed('INVALID_REGEX', `The pattern is not a valid regular expression:\n${fault}`);
  }
  if (/error parsing glob/i.test(fault)) {
    return failed('INVALID_ARGS', `include is not a valid glob: ${fault}`);
  }
  return failed('SEARCH_FAILED', `The search failed: ${fault || `ripgrep ended with ${result.exitCode ?? result.signal}`}`);
}

async function search(args: GrepArgs, context: ToolContext, ripgrepPath: string): Promise<ToolOutcome> {
  const root = await openSearchRoot(args, { path: args.path ?? '.', glob: args.include, cwd: context.cwd });
  try {
    const rgArgs = [
      ...outputOptions,
      '--hidden',
      ...root.options,
      '-g',
      '!.git',
      ...leftOutOptions(root),
      '-e',
      args.pattern,
      '--',
      root.target,
    ];
    const [run, leftOut] = await Promise.all([
      runRipgrep(context, root, { ripgrepPath, args: rgArgs, keepBytes }),
      countLeftOut(context, root, ripgrepPath),
    ]);
    if (!run.ok) {
      return run.outcome;
    }
    const matches = parseMatches(run.result.stdout.text, root);
    const notes = [...leftOut, ...notesOn(run.result, matches.length)];
    return matches.length === 0 ? withoutMatches(run.result, notes) : report(matches, notes, context.cwd);
  } finally {
    await root.close();
  }
}

/** What a reader of an incomplete answer must know. */
function notesOn(result: RunResult, matches: number): string[] {
  if (result.timedOut) {
    return ['(the search was stopped after 30 s; there may be more)'];
  }
  if (result.stdout.truncated && matches <= maxMatches) {
    return ['(more was found than could be kept; narrow the pattern or the path)'];
  }
  return result.exitCode === 2 ? [`(some files could not be searched: ${complaint(result)})`] : [];
}

async function execute(args: GrepArgs, context: ToolContext): Promise<ToolOutcome> {
  if (args.pattern.includes('\0') || args.include?.includes('\0') === true) {
    return failed('INVALID_ARGS', 'The pattern holds a NUL byte. Write it as \\x00.');
  }
  if (context.ripgrepPath === undefined) {
    return failed('RIPGREP_UNAVAILABLE', 'ripgrep is not installed with this server, so grep cannot be used. Search with bash instead.');
  }
  try {
    return await search(args, context, context.ripgrepPath);
  } catch (error) {
    return faultOutcome(error, args.path ?? '.', context.cwd);
  }
}

function presentCall(args: GrepArgs, context: PresentContext): ToolCallView {
  const where = args.path === undefined ? '' : ` in ${displayPath(args.path, context.cwd)}`;
  const which = args.include === undefined ? '' : ` (${args.include})`;
  return {
    card: 'generic',
    title: titleLine(`Search ${args.pattern}${where}${which}`),
    kind: 'search',
    rawInput: { ...args },
    locations: [{ path: resolve(context.cwd, args.path ?? '.') }],
  };
}

export const grepTool: Tool<GrepArgs> = {
  name: 'grep',
  description:
    'Searches file contents with a regular expression (Rust syntax, one line at a time) and gives path:line:text, at most 250 ' +
    'matches. Hidden files are included; .git, binary files, what .gitignore excludes, and .env files and keys not named by path are not.',
  parameters: {
    type: 'object',
    properties: {
      pattern: { type: 'string', minLength: 1, maxLength: 4096, description: 'Regular expression.' },
      path: { type: 'string', minLength: 1, maxLength: 4096, description: 'File or directory; the working directory when left out.' },
      include: { type: 'string', minLength: 1, maxLength: 1024, description: 'Glob of the files to search, such as "*.ts".' },
    },
    required: ['pattern'],
    additionalProperties: false,
  },
  isParallelSafe: () => true,
  access: (args, context) => ({ kind: 'read', paths: [decidedPath(args, args.path ?? '.', context.cwd)] }),
  execute,
  presentDraft: (draft) => searchDraft(draft, 'Search'),
  presentCall,
  presentResult: (_args, outcome) => textView(outcome),
};
