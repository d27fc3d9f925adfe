/**
 * Keeps stdout for the protocol alone.
 *
 * Call it before anything else of the program runs, and before any thread starts. Afterwards only the returned stream
 * reaches fd 1; `process.stdout` and `console` lead to stderr. It cannot stop `fs.writeSync(1)` or a child started with
 * inherited stdio: both are banned in this program.
 */
import { createWriteStream, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { isatty, WriteStream } from 'node:tty';

const STDOUT_FD = 1;

/**
 * Takes fd 1 for the protocol and returns the only stream that writes to it.
 *
 * Pipes, socket pairs, terminals and files are told apart, since each needs its own kind of stream. Pipes and sockets
 * are written asynchronously: a reader that stalls does not stop the event loop. Nothing handles `error` on the stream
 * yet: give it to a {@link FrameWriter} in the same turn.
 *
 * @param instead what the protocol goes to when fd 1 is not it; it is given back as it is
 */
export function takeStdout(instead?: Writable): Writable {
  const out = instead ?? openProtocolStream();
  const toStderr = { configurable: true, enumerable: true, get: () => process.stderr };
  Object.defineProperty(process, 'stdout', toStderr);
  // console caches the stream it first wrote to; this also reaches one that was used before the guard.
  Object.defineProperty(console, '_stdout', { ...toStderr, enumerable: false });
  return out;
}

function openProtocolStream(): Writable {
  if (isatty(STDOUT_FD)) return new WriteStream(STDOUT_FD);
  const kind = fstatSync(STDOUT_FD);
  if (kind.isFIFO() || kind.isSocket()) return new Socket({ fd: STDOUT_FD, readable: false, writable: true });
  // A file or /dev/null. The descriptor is not ours to close: whatever opened next would become fd 1.
  return createWriteStream('', { fd: STDOUT_FD, autoClose: false });
}
