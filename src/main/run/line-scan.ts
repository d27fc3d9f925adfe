/**
 * Reads a file line by line with the place of each line, in memory that does not grow with the file. For jobs files and results
 * files, whose lines are found again by their place.
 */
import type { FileHandle } from 'node:fs/promises';

export interface ScannedLine {
  /** From 1. */
  readonly number: number;
  /** Of its first byte. */
  readonly offset: number;
  /** Without its end. Empty when it was too long. */
  readonly bytes: Buffer;
  /** Whether an LF stood behind it: the last line of a file that was cut off has none. */
  readonly ended: boolean;
  /** It was longer than the limit; its bytes were let go. */
  readonly tooLong: boolean;
}

/** Small, since most logs of jobs are: a large buffer for each would cost more than reading them. */
const chunkBytes = 64 * 1024;
const LF = 0x0a;
const CR = 0x0d;

/** All lines in order, blank ones too. A CR before the LF is dropped. `bytes` is valid until the next line is asked for. */
export async function* scanLines(file: FileHandle, maxLineBytes: number): AsyncGenerator<ScannedLine> {
  const chunk = Buffer.allocUnsafe(chunkBytes);
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = 1;
  let lineStart = 0;
  let position = 0;
  const take = (piece: Buffer, ended: boolean): ScannedLine => {
    const tooLong = heldBytes + piece.length > maxLineBytes;
    const bytes = tooLong ? Buffer.alloc(0) : held.length === 0 ? piece : Buffer.concat([...held, piece]);
    const line = { number, offset: lineStart, bytes: bytes.at(-1) === CR ? bytes.subarray(0, -1) : bytes, ended, tooLong };
    lineStart += heldBytes + piece.length + 1;
    number += 1;
    held = [];
    heldBytes = 0;
    return line;
  };
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    const read = chunk.subarray(0, bytesRead);
    let start = 0;
    for (let end = read.indexOf(LF); end !== -1; end = read.indexOf(LF, start)) {
      yield take(read.subarray(start, end), true);
      start = end + 1;
    }
    const rest = read.subarray(start);
    // Over the limit only the length is kept.
    if (heldBytes + rest.length <= maxLineBytes) held.push(Buffer.from(rest));
    else held = [];
    heldBytes += rest.length;
  }
  if (heldBytes > 0) yield take(Buffer.alloc(0), false);
}

/** The bytes at a place, as text. @throws when the file has become shorter */
export async function readAt(file: FileHandle, offset: number, length: number): Promise<string> {
  const bytes = Buffer.allocUnsafe(length);
  for (let filled = 0; filled < length; ) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled);
    if (bytesRead === 0) throw new Error('the file became shorter while it was read');
    filled += bytesRead;
  }
  return bytes.toString('utf8');
}
