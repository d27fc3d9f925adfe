/**
 * `glob`: files by name pattern, newest first, without what ignore files exclude.
 */
import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { PresentContext, ToolCallView } from '../../shared/render-intents.ts';
import { displayPath, relativePath } from '../display/display-path.ts';
import { searchDraft } from './draft-view.ts';
import { decidedPath } from './file-access.ts';
import { FsFault, faultOutcome } from './fs-fault.ts';
import { walkGlob } from './glob-walk.ts';
import { failed, succeeded, textView } from './outcome.ts';
import { complaint, runRipgrep } from './ripgrep.ts';
import { openSearchRoot } from './search-root.ts';
import type { SearchRoot } from './search-root.ts';
import { titleLine } from '../display/title-line.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxResults = 100;
/** Head and tail together; the head alone holds more than 100 of the longest paths. */
const keepBytes = 2 * 1024 * 1024;

export interface GlobArgs {
  readonly pattern: string;
  readonly path?: string;
}

interface Found {
  /** Absolute. */
  readonly path: string;
  readonly mtimeMs: number;
}

/** Newest first; files of one time by path, so that equal trees give equal answers. */
async function byTime(paths: readonly string[]): Promise<Found[]> {
  const found = await Promise.all(
    paths.map(async (path) => {
      const stats = await lstat(path).catch(() => undefined);
      // Removed since it was listed: still a fair answer, but an old one.
      return { path, mtimeMs: stats?.mtimeMs ?? 0 };
    }),
  );
  return found.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.path < b.path ? -1 : 1));
}

function report(found: readonly Found[], total: string | undefined, notes: readonly string[], cwd: string): ToolOutcome {
  if (found.length === 0) {
    return succeeded(['No files match.', ...notes].join('\n'));
  }
  const lines = found.map(({ path }) => relativePath(path, cwd));
  const cut = total === undefined ? [] : [`(the newest ${found.length} of ${total} files; narrow the pattern to see others)`];
  const tail = [...cut, ...notes];
  return succeeded(tail.length === 0 ? lines.join('\n') : `${lines.join('\n')}\n\n${tail.join('\n')}`);
}

async function withRipgrep(context: ToolContext, root: SearchRoot, ripgrepPath: string): Promise<ToolOutcome> {
  const rgArgs = ['--files', '--hidden', '--null', '--sortr', 'modified', ...root.options, '-g', '!.git', '--', root.target];
  const run = await runRipgrep(context, root, { ripgrepPath, args: rgArgs, keepBytes });
  if (!run.ok) {
    return run.outcome;
  }
  const { result } = run;
  const printed = result.stdout.text.split('\0');
  // What follows the last NUL is nothing, or a path that was cut.
  printed.pop();
  if (printed.length === 0 && result.timedOut) {
    return failed('SEARCH_TIMEOUT', 'The search took longer than 30 s. Give a path closer to what you look for.');
  }
  const fault = complaint(result);
  if (printed.length === 0 && result.exitCode !== 0 && result.exitCode !== 1 && /error parsing glob|invalid/i.test(fault)) {
    return failed('INVALID_ARGS', `The pattern is not a valid glob: ${fault}`);
  }
  const total = result.stdout.truncated ? `more than ${printed.length}` : String(printed.length);
  const found = await byTime(printed.slice(0, maxResults).map(root.found));
  const notes = result.timedOut ? ['(the search was stopped after 30 s; there may be more)'] : [];
  return report(found, printed.length > maxResults ? total : undefined, notes, context.cwd);
}

async function withWalk(args: GlobArgs, context: ToolContext, root: SearchRoot): Promise<ToolOutcome> {
  const walked = await walkGlob(root.path, args.pattern, context.signal);
  const found = await byTime(walked.paths);
  const notes = ['(ripgrep is not installed: ignore files were not read)'];
  if (!walked.complete) {
    notes.push('(the walk was stopped at its limit; there may be more)');
  }
  const total = found.length > maxResults ? String(found.length) : undefined;
  return report(found.slice(0, maxResults), total, notes, context.cwd);
}

async function find(args: GlobArgs, context: ToolContext): Promise<ToolOutcome> {
  const path = args.path ?? '.';
  const { ripgrepPath } = context;
  // The walk matches by itself, from the place that was named.
  const glob = ripgrepPath === undefined ? undefined : args.pattern;
  const root = await openSearchRoot(args, { path, glob, cwd: context.cwd });
  try {
    if (root.isFile) {
      throw new FsFault('FS_NOT_DIRECTORY', `${path} is a file. Give the directory to search, or leave path out.`);
    }
    return ripgrepPath === undefined ? await withWalk(args, context, root) : await withRipgrep(context, root, ripgrepPath);
  } finally {
    await root.close();
  }
}

async function execute(args: GlobArgs, context: ToolContext): Promise<ToolOutcome> {
  if (args.pattern.includes('\0')) {
    return failed('INVALID_ARGS', 'The pattern holds a NUL byte.');
  }
  try {
    return await find(args, context);
  } catch (error) {
    return faultOutcome(error, args.path ?? '.', context.cwd);
  }
}

function presentCall(args: GlobArgs, context: PresentContext): ToolCallView {
  const where = args.path === undefined ? '' : ` in ${displayPath(args.path, context.cwd)}`;
  return {
    card: 'generic',
    title: titleLine(`Find ${args.pattern}${where}`),
    kind: 'search',
    rawInput: { ...args },
    locations: [{ path: resolve(context.cwd, args.path ?? '.') }],
  };
}

export const globTool: Tool<GlobArgs> = {
  name: 'glob',
  description:
    'Finds files by name, newest first, at most 100. A pattern without a slash matches file names at any depth ("*.ts"); one ' +
    'with a slash counts from path ("src/**/*.ts"). Hidden files are included; .git and what .gitignore excludes are not.',
  parameters: {
    type: 'object',
    properties: {
      pattern: { type: 'string', minLength: 1, maxLength: 1024, description: 'Glob with *, **, ?, [a-z] and {a,b}.' },
      path: { type: 'string', minLength: 1, maxLength: 4096, description: 'Directory to search; the working directory when left out.' },
    },
    required: ['pattern'],
    additionalProperties: false,
  },
  isParallelSafe: () => true,
  access: (args, context) => ({ kind: 'read', paths: [decidedPath(args, args.path ?? '.', context.cwd)] }),
  execute,
  presentDraft: (draft) => searchDraft(draft, 'Find'),
  presentCall,
  presentResult: (_args, outcome) => textView(outcome),
};
