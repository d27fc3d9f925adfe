/**
 * What a call of a tool is called on its card, and which icon it gets: as an editor has it. The tools themselves live in the session's
 * threads and cannot be asked here; a test holds both to the same words. A tool that is not known is told by the shape of its arguments.
 */
import { relative, resolve } from 'node:path';
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import { isInside } from '../../shared/path-inside.ts';
import type { RenderKind } from '../../shared/render-intents.ts';
import { headOf, visibleLine } from '../run/view/visible-text.ts';
import type { CallRecord } from './transcript-item.ts';

export interface CallTitle {
  readonly text: string;
  readonly kind: RenderKind;
  /** Arguments that the title shows whole. */
  readonly told: readonly string[];
}

const longestTitle = 200;
const longestSalient = 80;
/** Of a tool of an MCP server: the arguments that say best what a call is about, the best first. */
const salientNames = ['path', 'file', 'file_path', 'filename', 'uri', 'url', 'query', 'q', 'name', 'title', 'id', 'command', 'text'];

interface TitleWords {
  readonly text: string;
  readonly told?: readonly string[];
}
type Words = (args: JsonObject, cwd: string) => TitleWords | undefined;

const known: Readonly<Record<string, { readonly kind: RenderKind; readonly words: Words }>> = {
  read: { kind: 'read', words: (args, cwd) => withPath('Read', args, cwd, windowText(args)) },
  write: { kind: 'edit', words: (args, cwd) => withPath('Write', args, cwd) },
  edit: { kind: 'edit', words: (args, cwd) => withPath('Edit', args, cwd) },
  glob: { kind: 'search', words: (args, cwd) => searched('Find', args, cwd) },
  grep: { kind: 'search', words: (args, cwd) => searched('Search', args, cwd) },
  bash: { kind: 'execute', words: (args) => commandWords(args) },
  bash_output: { kind: 'execute', words: ({ task_id: id }) => ofId('Output of', id) },
  bash_kill: { kind: 'execute', words: ({ task_id: id }) => ofId('End', id) },
  todo_write: { kind: 'think', words: ({ todos }) => planWords(todos) },
  exit_plan_mode: { kind: 'switch_mode', words: () => ({ text: 'Plan for approval' }) },
  ask_user: { kind: 'other', words: ({ questions }) => askWords(questions) },
  subagent: { kind: 'think', words: (args) => subagentWords(args) },
  subagent_output: { kind: 'think', words: ({ job_id: id }) => ofId('Output of', id) },
  subagent_kill: { kind: 'think', words: ({ job_id: id }) => ofId('End', id) },
};

/** @param args of the call; `undefined` where they are no object */
export function callTitle({ name, mcp }: Pick<CallRecord, 'name' | 'mcp'>, args: JsonObject | undefined, cwd: string): CallTitle {
  if (mcp !== undefined) {
    const salient = salientArgument(args ?? {});
    const text = `${mcp.server}: ${mcp.tool}${salient === '' ? '' : ` (${salient})`}`;
    return { text: visibleLine(text, longestTitle), kind: mcp.kind, told: [] };
  }
  const tool = Object.hasOwn(known, name) ? known[name] : undefined;
  const words = args === undefined ? undefined : tool?.words(args, cwd);
  const { text, told = [] } = words ?? firstText(name, args ?? {});
  return { text: visibleLine(text, longestTitle), kind: tool?.kind ?? 'other', told };
}

function firstText(name: string, args: JsonObject): TitleWords {
  for (const [key, value] of Object.entries(args))
    if (typeof value === 'string') return { told: toldWhole(key, value), text: `${name} ${value}` };
  return { text: name };
}

function toldWhole(key: string, value: string, more: readonly string[] = []): readonly string[] {
  return value.length < longestTitle / 2 && visibleLine(value, longestTitle) === value ? [key, ...more] : more;
}

function withPath(verb: string, args: JsonObject, cwd: string, more = ''): ReturnType<Words> {
  const path = args['file_path'];
  return typeof path === 'string'
    ? { told: toldWhole('file_path', path, ['offset', 'limit']), text: `${verb} ${pathText(path, cwd)}${more}` }
    : undefined;
}

function windowText({ offset, limit }: JsonObject): string {
  if (typeof offset !== 'number' && typeof limit !== 'number') return '';
  const first = typeof offset === 'number' ? offset : 1;
  return typeof limit === 'number' ? ` (${first} - ${first + limit - 1})` : ` (from line ${first})`;
}

function searched(verb: string, args: JsonObject, cwd: string): ReturnType<Words> {
  const { pattern, path, include } = args;
  if (typeof pattern !== 'string') return undefined;
  const where = typeof path === 'string' ? ` in ${pathText(path, cwd)}` : '';
  return {
    told: toldWhole('pattern', pattern, ['path', 'include']),
    text: `${verb} ${pattern}${where}${typeof include === 'string' ? ` (${include})` : ''}`,
  };
}

/** Line ends are seen, as they end commands. */
function commandWords({ command }: JsonObject): ReturnType<Words> {
  if (typeof command !== 'string') return undefined;
  return {
    told: toldWhole('command', command),
    text: headOf(command, longestTitle * 8)
      .trim()
      .replaceAll(/\s*[\r\n]+\s*/g, ' ⏎ '),
  };
}

function ofId(verb: string, id: JsonValue | undefined): ReturnType<Words> {
  return typeof id === 'string' || typeof id === 'number' ? { text: `${verb} ${id}` } : undefined;
}

function planWords(todos: JsonValue | undefined): ReturnType<Words> {
  if (!Array.isArray(todos)) return undefined;
  const done = todos.filter((entry) => isObject(entry) && entry['status'] === 'completed').length;
  return { told: ['todos'], text: `Update plan (${todos.length === 0 ? 'cleared' : `${done} of ${todos.length} done`})` };
}

function askWords(questions: JsonValue | undefined): ReturnType<Words> {
  const [first, ...more] = Array.isArray(questions) ? questions : [];
  const question = isObject(first) ? first['question'] : undefined;
  if (typeof question !== 'string') return undefined;
  return { text: `Ask: ${visibleLine(question, longestTitle)}${more.length === 0 ? '' : ` (and ${more.length} more)`}` };
}

function subagentWords({ description, agent }: JsonObject): ReturnType<Words> {
  if (typeof description !== 'string') return undefined;
  return {
    told: toldWhole('description', description, ['agent']),
    text: `${description}${typeof agent === 'string' ? ` (${agent})` : ''}`,
  };
}

function salientArgument(args: JsonObject): string {
  const texts = Object.entries(args).filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].trim() !== '');
  const named = salientNames.map((name) => texts.find(([key]) => key === name)).find((entry) => entry !== undefined);
  return visibleLine((named ?? texts[0])?.[1] ?? '', longestSalient);
}

/** Short when it lies in the working directory, whole when it does not. */
function pathText(path: string, cwd: string): string {
  const absolute = resolve(cwd, headOf(path, longestTitle * 8));
  return isInside(cwd, absolute) ? relative(cwd, absolute) || '.' : absolute;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
