/**
 * Reads a log in blocks of whole lines, in memory that does not grow with it, for whoever looks for a few lines among many.
 * Each block is read by the thread pool, so the event loop has its turn between two of them.
 */
import type { FileHandle } from 'node:fs/promises';
import { logCorrupt } from './log-faults.ts';

const chunkBytes = 256 * 1024;
/** A writer makes no longer line. */
const longestLine = 64 * 1024 * 1024;
const lineFeed = 10;

export interface LineBlock {
  /** Whole lines, each ended by LF; valid until the next block is asked for. */
  readonly bytes: Buffer;
  /** Where the block begins in the file. */
  readonly offset: number;
}

export interface OpenLog {
  readonly file: FileHandle;
  /** Names the log in errors. */
  readonly path: string;
  /** Bytes to read. */
  readonly size: number;
}

/**
 * The lines of the first `size` bytes, in order. A last line without its end is left out.
 *
 * @throws ServerError LOG_CORRUPT for a line that is longer than a log may have; the system's error
 */
export async function* wholeLines({ file, path, size }: OpenLog): AsyncGenerator<LineBlock> {
  let buffer: Buffer = Buffer.allocUnsafe(chunkBytes);
  /** Bytes of a line that is not whole yet, at the buffer's beginning. */
  let held = 0;
  for (let position = 0; position < size; ) {
    if (held === buffer.length) {
      if (held >= longestLine) throw logCorrupt(path, undefined, 'a line is longer than 64 MB');
      buffer = grown(buffer, held);
    }
    const { bytesRead } = await file.read(buffer, held, Math.min(buffer.length - held, size - position), position);
    if (bytesRead === 0) return;
    const end = buffer.subarray(0, held + bytesRead).lastIndexOf(lineFeed) + 1;
    const offset = position - held;
    position += bytesRead;
    held += bytesRead;
    if (end === 0) continue;
    yield { bytes: buffer.subarray(0, end), offset };
    buffer.copyWithin(0, end, held);
    held -= end;
    // One long line must not keep its memory for the rest of the file.
    if (buffer.length > chunkBytes && held < chunkBytes) buffer = Buffer.from(buffer.subarray(0, chunkBytes));
  }
}

/** The line that the byte at `at` stands in, as JSON; `undefined` when it is none. */
export function lineAt(bytes: Buffer, at: number): unknown {
  const start = bytes.lastIndexOf(lineFeed, at) + 1;
  const end = bytes.indexOf(lineFeed, at);
  try {
    return JSON.parse(bytes.toString('utf8', start, end)) as unknown;
  } catch {
    // Damage is for whoever loads the session to report.
    return undefined;
  }
}

function grown(buffer: Buffer, held: number): Buffer {
  const larger = Buffer.allocUnsafe(buffer.length * 2);
  buffer.copy(larger, 0, 0, held);
  return larger;
}
