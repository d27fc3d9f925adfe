/**
 * The command language of the scripted model: one line, one command.
 *
 * Strict on purpose: a sentence that merely begins like a command is not one, since the model must never seem to
 * understand prose.
 */
import { parseCollect, parseDelegate, parseStop } from './scripted-delegation.ts';

export type ScriptedCommand =
  | { readonly kind: 'tool'; readonly name: string; readonly args: Readonly<Record<string, unknown>>; readonly parallel: boolean }
  /** `output last`, `collect` and the like: the id is in a tool's result and known only when the step runs. */
  | {
      readonly kind: 'last-task';
      readonly name: 'bash_output' | 'bash_kill' | 'subagent_output' | 'subagent_kill';
      /** Beside the id. */
      readonly args?: Readonly<Record<string, unknown>>;
      readonly parallel: boolean;
    }
  | { readonly kind: 'think' | 'say'; readonly text: string }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'repeat'; readonly count: number; readonly words: readonly string[] }
  | { readonly kind: 'fail'; readonly code: string; readonly times: number }
  | { readonly kind: 'unknown'; readonly line: string };

const maxRepeat = 1_000_000;
const maxWaitMs = 3_600_000;

/** What a person can write, for the model's own explanation. The dashes keep it from being read back as commands. */
export const scriptedCommandHelp = [
  'read FILE [from A to B]',
  'grep PATTERN [in PATH-OR-GLOB]',
  'glob PATTERN [in PATH]',
  'run COMMAND, or bg COMMAND for the background',
  'output ID, kill ID (or: last)',
  'write FILE <<EOF, lines, EOF',
  'edit FILE /old/new/',
  'todo x done; *doing; later',
  'delegate AGENT PROMPT (or <<EOF, lines, EOF), delegate & AGENT PROMPT for the background',
  'collect [ID] [MS], stop [ID] for background agents',
  'say TEXT, think TEXT, wait MS, repeat N TEXT, fail CODE [TIMES]',
  '& COMMAND runs beside the one before it',
]
  .map((line) => `- ${line}`)
  .join('\n');

type Parse = (rest: string, heredoc: string | undefined) => ScriptedCommand | undefined;

function tool(name: string, args: Readonly<Record<string, unknown>>): ScriptedCommand {
  return { kind: 'tool', name, args, parallel: false };
}

function unquote(text: string): string {
  const match = /^(["'])(.*)\1$/.exec(text);
  return match?.[2] ?? text;
}

/** One path: a quoted string, or a word without spaces. */
const pathPattern = String.raw`("[^"]+"|'[^']+'|[^\s"']+)`;

function parseRead(rest: string): ScriptedCommand | undefined {
  const match = new RegExp(`^${pathPattern}(?:\\s+from\\s+(\\d+)(?:\\s+to\\s+(\\d+))?)?$`).exec(rest);
  if (match?.[1] === undefined) return undefined;
  const from = match[2] === undefined ? undefined : Number(match[2]);
  const to = match[3] === undefined ? undefined : Number(match[3]);
  if (from !== undefined && (from < 1 || (to !== undefined && to < from))) return undefined;
  return tool('read', {
    file_path: unquote(match[1]),
    ...(from === undefined ? {} : { offset: from }),
    ...(from === undefined || to === undefined ? {} : { limit: to - from + 1 }),
  });
}

function parseGrep(rest: string): ScriptedCommand | undefined {
  const match = new RegExp(`^(.+?)(?:\\s+in\\s+${pathPattern})?$`).exec(rest);
  if (match?.[1] === undefined) return undefined;
  const where = match[2] === undefined ? undefined : unquote(match[2]);
  const scope = where === undefined ? {} : /[*?[{]/.test(where) ? { include: where } : { path: where };
  return tool('grep', { pattern: unquote(match[1]), ...scope });
}

function parseGlob(rest: string): ScriptedCommand | undefined {
  const match = new RegExp(`^${pathPattern}(?:\\s+in\\s+${pathPattern})?$`).exec(rest);
  if (match?.[1] === undefined) return undefined;
  return tool('glob', { pattern: unquote(match[1]), ...(match[2] === undefined ? {} : { path: unquote(match[2]) }) });
}

function parseRun(background: boolean): Parse {
  return (rest, heredoc) => {
    const command = heredoc ?? rest;
    if (command.trim() === '') return undefined;
    const first = command.trim().split('\n', 1)[0] ?? '';
    const description = `${background ? 'Start' : 'Run'} ${first.length > 60 ? `${first.slice(0, 60)}…` : first}`;
    return tool('bash', { command, description, ...(background ? { run_in_background: true } : {}) });
  };
}

function parseTask(name: 'bash_output' | 'bash_kill'): Parse {
  return (rest) => {
    if (!/^\S+$/.test(rest)) return undefined;
    return rest === 'last' ? { kind: 'last-task', name, parallel: false } : tool(name, { task_id: rest });
  };
}

function parseWrite(rest: string, heredoc: string | undefined): ScriptedCommand | undefined {
  if (heredoc === undefined || !new RegExp(`^${pathPattern}$`).test(rest)) return undefined;
  return tool('write', { file_path: unquote(rest), content: heredoc });
}

function unescape(text: string, delimiter: string): string {
  const named: Record<string, string> = { n: '\n', t: '\t', '\\': '\\', [delimiter]: delimiter };
  return text.replace(/\\(.)/gs, (whole, letter: string) => named[letter] ?? whole);
}

/** Splits at delimiters that no backslash guards. */
function splitAt(text: string, delimiter: string): string[] {
  const parts = [''];
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i] ?? '';
    if (char === delimiter) parts.push('');
    else if (char === '\\') parts[parts.length - 1] += char + (text[(i += 1)] ?? '');
    else parts[parts.length - 1] += char;
  }
  return parts;
}

function parseEdit(rest: string): ScriptedCommand | undefined {
  const match = new RegExp(`^${pathPattern}\\s+([^\\s\\w\\\\])(.*)$`, 's').exec(rest);
  const [path, delimiter, tail] = [match?.[1], match?.[2], match?.[3]];
  if (path === undefined || delimiter === undefined || tail === undefined) return undefined;
  const [old, replacement, flags, ...more] = splitAt(tail, delimiter);
  if (!old || replacement === undefined || (flags !== '' && flags !== 'g') || more.length > 0) return undefined;
  return tool('edit', {
    file_path: unquote(path),
    old_string: unescape(old, delimiter),
    new_string: unescape(replacement, delimiter),
    ...(flags === 'g' ? { replace_all: true } : {}),
  });
}

function parseTodo(rest: string): ScriptedCommand | undefined {
  const todos = rest
    .split(';')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => {
      if (entry.startsWith('*')) return { content: entry.slice(1).trim(), status: 'in_progress' };
      if (entry.startsWith('x ')) return { content: entry.slice(2).trim(), status: 'completed' };
      return { content: entry, status: 'pending' };
    });
  return todos.length === 0 || todos.some((todo) => todo.content === '') ? undefined : tool('todo_write', { todos });
}

function parseRepeat(rest: string): ScriptedCommand | undefined {
  const match = /^(\d+)\s+(\S.*)$/.exec(rest);
  if (match?.[2] === undefined) return undefined;
  const count = Number(match[1]);
  return count > maxRepeat ? undefined : { kind: 'repeat', count, words: match[2].split(/\s+/) };
}

function parseWait(rest: string): ScriptedCommand | undefined {
  const ms = /^\d+$/.test(rest) ? Number(rest) : Number.NaN;
  return ms <= maxWaitMs ? { kind: 'wait', ms } : undefined;
}

function parseFail(rest: string): ScriptedCommand | undefined {
  const match = /^([A-Z_]+)(?:\s+(\d+))?$/.exec(rest);
  if (match?.[1] === undefined) return undefined;
  return { kind: 'fail', code: match[1], times: match[2] === undefined ? Infinity : Number(match[2]) };
}

const parsers: Readonly<Record<string, Parse>> = {
  read: parseRead,
  grep: parseGrep,
  glob: parseGlob,
  run: parseRun(false),
  bg: parseRun(true),
  output: parseTask('bash_output'),
  kill: parseTask('bash_kill'),
  write: parseWrite,
  edit: parseEdit,
  todo: parseTodo,
  delegate: parseDelegate,
  collect: parseCollect,
  stop: parseStop,
  wait: parseWait,
  repeat: parseRepeat,
  fail: parseFail,
  say: (rest) => (rest === '' ? undefined : { kind: 'say', text: rest }),
  think: (rest) => (rest === '' ? undefined : { kind: 'think', text: rest }),
};

/** Reads one line. `heredoc` is the text below it, when the line ended in `<<WORD`. A line that is no command comes back as `unknown`. */
export function parseCommand(line: string, heredoc?: string): ScriptedCommand {
  const parallel = line.startsWith('& ');
  const body = parallel ? line.slice(2).trim() : line;
  const [, word, rest] = /^([a-z]+)(?:\s+(.*))?$/s.exec(body) ?? [];
  const parse = word !== undefined && Object.hasOwn(parsers, word) ? parsers[word] : undefined;
  const command = parse?.(rest?.trim() ?? '', heredoc);
  if (command === undefined) return { kind: 'unknown', line };
  return parallel && (command.kind === 'tool' || command.kind === 'last-task') ? { ...command, parallel } : command;
}
