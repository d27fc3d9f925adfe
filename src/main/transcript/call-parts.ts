/**
 * What the record of a call says, for whoever shows its card: told by the shape of arguments and results, never by a tool's name, so
 * that tools of later releases and of other servers are shown too. Tolerant of whatever a log holds.
 */
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import { visibleLine } from '../run/view/visible-text.ts';
import type { CallRecord } from './transcript-item.ts';

export interface DiffOf {
  readonly path: string;
  readonly oldText: string | null;
  readonly newText: string;
}

/** How it ended, in a word or two. */
export interface CallEnd {
  readonly text: string;
  readonly state: 'ok' | 'bad' | 'open';
}

/** `undefined` for arguments that are no JSON object: they are shown as they came. */
export function parseArguments(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text === '' ? '{}' : text) as JsonValue;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function callEnd({ result, startedAt }: CallRecord): CallEnd {
  if (result === undefined) return { text: startedAt === undefined ? 'not started' : 'no result', state: 'open' };
  const { exitCode, signal, timedOut } = result.meta ?? {};
  if (timedOut === true) return { text: 'timed out', state: 'bad' };
  if (typeof signal === 'string') return { text: visibleLine(signal, 20), state: 'bad' };
  if (typeof exitCode === 'number') return { text: `exit ${exitCode}`, state: exitCode === 0 ? 'ok' : 'bad' };
  if (result.isError) return { text: visibleLine(result.code ?? 'error', 60), state: 'bad' };
  return { text: 'done', state: 'ok' };
}

/** What the call gave a person to read: of a command its output and notes, else what the model read. */
export function resultText({ result }: CallRecord): string {
  if (result === undefined) return '';
  const { output, notes } = result.meta ?? {};
  const parts = [output, ...(Array.isArray(notes) ? notes : [])];
  const shown = parts.filter((part): part is string => typeof part === 'string' && part !== '').join('\n');
  return shown === '' ? result.text : shown;
}

/** The result of a command, and not only words about one. */
export function isTerminal({ result }: CallRecord): boolean {
  const { exitCode, signal } = result?.meta ?? {};
  return typeof exitCode === 'number' || typeof signal === 'string';
}

/** The changes that were made. */
export function diffsOf({ result }: CallRecord): DiffOf[] {
  const list = result?.meta?.['diffs'];
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry) => {
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return [];
    const { path, oldText, newText } = entry;
    const whole = typeof path === 'string' && typeof newText === 'string' && (typeof oldText === 'string' || oldText === null);
    return whole ? [{ path, oldText, newText }] : [];
  });
}
