/** What may stand behind `/undo`, `/redo` and `/rewind`: one word at most, and two flags. */
import { ServerError } from '../../shared/errors.ts';
import { titleLine } from '../display/title-line.ts';

export interface RewindArguments {
  readonly word: string | undefined;
  readonly force: boolean;
  readonly files: boolean;
}

export const rewindFlags: ReadonlySet<string> = new Set(['--force', '--no-files']);

/** @throws ServerError INVALID_PARAMS for anything else, with `usage` */
export function rewindArguments(text: string, usage: string): RewindArguments {
  const words = text.split(/\s+/u).filter((word) => word !== '');
  const unknown = words.find((word) => word.startsWith('-') && !rewindFlags.has(word));
  const plain = words.filter((word) => !word.startsWith('-'));
  if (unknown !== undefined || plain.length > 1) {
    const what = titleLine(unknown ?? plain[1] ?? '');
    throw new ServerError('INVALID_PARAMS', `Nothing was done: “${what}” is not understood. Say ${usage}.`);
  }
  return { word: plain[0], force: words.includes('--force'), files: !words.includes('--no-files') };
}

/** A count or a number of a prompt. @throws ServerError INVALID_PARAMS */
export function positiveNumber(word: string, usage: string): number {
  const value = /^\d{1,9}$/u.test(word) ? Number(word) : 0;
  if (value > 0) return value;
  throw new ServerError('INVALID_PARAMS', `Nothing was done: “${titleLine(word)}” is no number from 1 on. Say ${usage}.`);
}
