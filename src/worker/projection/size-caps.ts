/**
 * Bounds for what one update may carry. A client reads a whole frame into memory, some with a parser that gives up on
 * deep nesting: neither a tool nor a model may decide how large or how deep a frame gets.
 */
import type { JsonValue } from '../../shared/errors.ts';
import { sliceWhole } from '../display/title-line.ts';

/** Bytes of JSON that the content of one update may take. With titles, locations and raw input a frame stays below 1 MiB. */
export const contentBytes = 640 * 1024;
export const rawJsonBytes = 32 * 1024;
/** serde_json, which several clients use, refuses a frame nested deeper than 128. */
const maxDepth = 32;
/** A UTF-16 unit takes at most six bytes of JSON, as an escape. */
const worstBytesPerUnit = 6;
const markerBytes = 80;

/** What is left for the content of one update. Each text or diff takes its share in order. */
export class ContentBudget {
  #left: number;

  constructor(bytes = contentBytes) {
    this.#left = bytes;
  }

  /** The text, or its beginning with a mark that says how long it was. @throws TypeError for what is no text */
  take(text: string): string {
    requireText(text);
    const fits = beginningWithin(text, this.#left);
    this.#left -= jsonBytes(fits);
    return fits;
  }

  /** Reserves the bytes of a thing that must not be cut; false when there is no room for it. @throws TypeError for what is no text */
  reserve(texts: readonly string[]): boolean {
    texts.forEach(requireText);
    if (texts.some((text) => text.length > this.#left)) return false;
    const bytes = texts.reduce((sum, text) => sum + jsonBytes(text), 0);
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }
}

/** A presenter that is given arguments which its tool would refuse passes on whatever they hold. */
function requireText(text: unknown): void {
  if (typeof text !== 'string') throw new TypeError('expected a text to show');
}

function beginningWithin(text: string, bytes: number): string {
  if (text.length * worstBytesPerUnit + 2 <= bytes) return text;
  // A unit takes at least one byte: what is longer need not be measured.
  if (text.length <= bytes && jsonBytes(text) <= bytes) return text;
  const mark = `\n… (cut here: ${text.length} characters in all)`;
  const room = bytes - markerBytes;
  if (room <= 0) return '…';
  let kept = sliceWhole(text, Math.min(text.length, room));
  while (jsonBytes(kept) > room) {
    kept = sliceWhole(kept, Math.floor(Math.min((kept.length * room) / jsonBytes(kept), kept.length - 1)));
  }
  return kept + mark;
}

function jsonBytes(value: JsonValue): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** The value itself when small and shallow; else a copy with long parts cut; else the beginning of its text. */
export function capJson(value: JsonValue, bytes = rawJsonBytes): JsonValue {
  if (isShallow(value, maxDepth) && jsonBytes(value) <= bytes) return value;
  const shortened = shorten(value, maxDepth);
  if (jsonBytes(shortened) <= bytes) return shortened;
  return beginningWithin(JSON.stringify(shortened), bytes);
}

/** Stops at the limit, so that it cannot overflow the stack on what it is there to find. */
function isShallow(value: JsonValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  return Object.values(value).every((member) => isShallow(member, depth - 1));
}

function shorten(value: JsonValue, depth: number): JsonValue {
  if (typeof value === 'string') return value.length <= 1024 ? value : `${sliceWhole(value, 1024)}… (${value.length} characters in all)`;
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  if (Array.isArray(value)) return value.slice(0, 64).map((member) => shorten(member, depth - 1));
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, 64)
      .map(([key, member]) => [key, shorten(member, depth - 1)]),
  );
}
