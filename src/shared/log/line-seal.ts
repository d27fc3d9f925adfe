/**
 * The checksum at the end of a line: `{…,"crc":"1a2b3c4d"}`.
 *
 * A flipped bit inside a string leaves valid JSON, so parsing alone would pass it on in silence. The seal is the CRC-32 of
 * every byte of the line before `,"crc"`. A line without one is accepted, so that a log can be made or mended by hand.
 */
import { crc32 } from 'node:zlib';

/** Bytes of `,"crc":"1a2b3c4d"}`. */
const sealBytes = 18;
const opening = Buffer.from(',"crc":"');
const hexDigits = Buffer.from('0123456789abcdef');
const quote = 0x22;
const brace = 0x7d;

/** The line's bytes, LF included. `json` is the text of an object with at least one member. */
export function sealLine(json: string): Buffer {
  const length = Buffer.byteLength(json) - 1;
  const line = Buffer.allocUnsafe(length + sealBytes + 1);
  line.write(json);
  // The closing brace that was just written is the first byte of the seal.
  const crc = crc32(line.subarray(0, length)).toString(16).padStart(8, '0');
  line.write(`,"crc":"${crc}"}\n`, length, 'latin1');
  return line;
}

/**
 * The JSON text of the line in `bytes[start, end)`, LF not counted, without its seal.
 *
 * Writes one byte into `bytes` (the closing brace, in place of the seal's comma), so that no copy is needed.
 *
 * @returns undefined when the seal does not fit the line
 */
export function unsealLine(bytes: Buffer, start: number, end: number): string | undefined {
  const seal = end - sealBytes;
  if (!hasSeal(bytes, start, end)) {
    return bytes.toString('utf8', start, end);
  }
  if (!isSealIntact(bytes, start, end)) {
    return undefined;
  }
  bytes[seal] = brace;
  return bytes.toString('utf8', start, seal + 1);
}

/** Whether `bytes[start, end)` is a whole sealed line with more behind it: two lines whose LF was damaged. */
export function beginsWithSealedLine(bytes: Buffer, start: number, end: number): boolean {
  for (let at = bytes.indexOf(opening, start); at >= 0 && at + sealBytes < end; at = bytes.indexOf(opening, at + 1)) {
    if (hasSeal(bytes, start, at + sealBytes) && isSealIntact(bytes, start, at + sealBytes)) {
      return true;
    }
  }
  return false;
}

function isSealIntact(bytes: Buffer, start: number, end: number): boolean {
  const crc = crc32(bytes.subarray(start, end - sealBytes));
  const digits = end - sealBytes + opening.length;
  for (let digit = 0; digit < 8; digit += 1) {
    // Lower case only: a flipped bit turns a into A.
    if (bytes[digits + digit] !== hexDigits[(crc >>> (28 - digit * 4)) & 15]) {
      return false;
    }
  }
  return true;
}

function hasSeal(bytes: Buffer, start: number, end: number): boolean {
  const seal = end - sealBytes;
  if (seal <= start || bytes[end - 1] !== brace || bytes[end - 2] !== quote) {
    return false;
  }
  for (let index = 0; index < opening.length; index += 1) {
    if (bytes[seal + index] !== opening[index]) {
      return false;
    }
  }
  return true;
}
