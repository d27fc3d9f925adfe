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
const quote = 0x22;
const brace = 0x7d;

/** The line's bytes, LF included. `json` is the text of an object with at least one member. */
export function sealLine(json: string): Buffer {
  const body = json.slice(0, -1);
  const crc = crc32(body).toString(16).padStart(8, '0');
  return Buffer.from(`${body},"crc":"${crc}"}\n`);
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
  const wanted = Number.parseInt(bytes.toString('latin1', seal + opening.length, end - 2), 16);
  if (crc32(bytes.subarray(start, seal)) !== wanted) {
    return undefined;
  }
  bytes[seal] = brace;
  return bytes.toString('utf8', start, seal + 1);
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
