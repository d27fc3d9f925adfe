/** A diagnostic as it may leave the broker: without secrets, and of bounded length. Pure. */
import type { SecretFilter } from './secret-filter.ts';

/** UTF-8, the mark of a cut included. */
const maxBytes = 4096;
const mark = '\n[...]\n';
/** Of foreign text, before it is looked through: far more than can be kept. */
const maxLookedAt = 32 * 1024;

/** The beginning says what happened, the end holds the last words: what is too long loses its middle. */
export function diagnosticText(text: string, secrets: SecretFilter): string {
  const short = text.length > 2 * maxLookedAt ? text.slice(0, maxLookedAt) + text.slice(-maxLookedAt) : text;
  const clean = secrets.clean(short).trim();
  const bytes = Buffer.from(clean);
  if (bytes.length <= maxBytes) return clean;
  const headRoom = 1024;
  const head = cutEnd(clean, headRoom);
  const tail = cutStart(clean, maxBytes - Buffer.byteLength(head) - mark.length);
  return `${head}${mark}${tail}`;
}

function cutEnd(text: string, room: number): string {
  return Buffer.from(text)
    .subarray(0, room)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
}

function cutStart(text: string, room: number): string {
  const bytes = Buffer.from(text);
  return bytes
    .subarray(bytes.length - room)
    .toString('utf8')
    .replace(/^\uFFFD+/, '');
}
