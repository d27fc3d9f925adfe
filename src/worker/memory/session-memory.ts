/**
 * How many bytes one session holds in its thread, by what they are for.
 *
 * Whoever holds something that can grow says how to read its size; nothing is counted while it grows, so a streamed token costs
 * nothing. A string is taken as two bytes a character, which is the most that it can be.
 */
import { ServerError } from '../../shared/errors.ts';

/** `history` what the model sees, `answer` what it is saying, `results` of calls that wait for an earlier one's, `waiting` the inbox. */
export type MemoryPart = 'history' | 'answer' | 'results' | 'waiting';

export const bytesPerChar = 2;
const mebibyte = 1024 * 1024;
const unlimited = Number.POSITIVE_INFINITY;

export class SessionMemory {
  readonly limitBytes: number;
  readonly #readers = new Map<() => number, MemoryPart>();

  /** Without a limit it only counts. */
  constructor(limitBytes: number = unlimited) {
    this.limitBytes = limitBytes;
  }

  /** @param bytes reads the size; quick, since it is called some times a second. @returns what takes it away again */
  hold(part: MemoryPart, bytes: () => number): () => void {
    this.#readers.set(bytes, part);
    return () => void this.#readers.delete(bytes);
  }

  get bytes(): number {
    let total = 0;
    for (const read of this.#readers.keys()) total += read();
    return total;
  }

  get isOver(): boolean {
    return this.limitBytes !== unlimited && this.bytes > this.limitBytes;
  }

  /** What a turn ends with that came over the limit. Names the largest part. */
  excess(): ServerError {
    const [part, bytes] = this.#largest();
    const limit = `${Math.round(this.limitBytes / mebibyte)} MB`;
    const message = `The session came to hold more than ${limit} (max_session_mb), most of it in its ${partWords[part]} (${Math.round(bytes / mebibyte)} MB).`;
    return new ServerError('SESSION_MEMORY', message);
  }

  #largest(): readonly [MemoryPart, number] {
    const sums = new Map<MemoryPart, number>();
    for (const [read, part] of this.#readers) sums.set(part, (sums.get(part) ?? 0) + read());
    return [...sums].reduce((most, one) => (one[1] > most[1] ? one : most), ['history', 0] as const);
  }
}

const partWords: Readonly<Record<MemoryPart, string>> = {
  history: 'conversation',
  answer: 'running answer',
  results: 'tool results',
  waiting: 'waiting messages',
};
