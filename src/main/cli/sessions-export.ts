/** `dsh-acp sessions export`: a session's log as it stands, or what its model saw and said. Reads only, and takes no lock. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { ServerError } from '../../shared/errors.ts';
import { sessionLogPath } from '../../shared/log/session-paths.ts';
import { FileSink } from '../run/report/file-sink.ts';
import { sessionTrajectory } from '../run/report/session-trajectory.ts';
import type { ShownSession } from './sessions-show.ts';

/** O_NONBLOCK: opening a planted FIFO must not wait for a writer. */
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const chunkBytes = 256 * 1024;
const lineFeed = 10;

interface TextSink {
  write(text: string | Uint8Array): Promise<void>;
}

/** Whole lines, up to the length that the log has now. @throws ServerError INTERNAL when it cannot be read */
async function copyLog(path: string, sink: TextSink): Promise<void> {
  const file = await open(path, flags);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error('expected a regular file');
    // The end of a line that is being written waits for its line feed, which may never come.
    let held: Buffer[] = [];
    for (let at = 0; at < stat.size; ) {
      const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, stat.size - at));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) break;
      at += bytesRead;
      const bytes = chunk.subarray(0, bytesRead);
      const end = bytes.lastIndexOf(lineFeed) + 1;
      if (end === 0) {
        held.push(bytes);
        continue;
      }
      await sink.write(Buffer.concat([...held, bytes.subarray(0, end)]));
      held = end === bytes.length ? [] : [bytes.subarray(end)];
    }
  } finally {
    await file.close();
  }
}

/** @throws ServerError INTERNAL when the log cannot be read, or the file cannot be written */
export async function exportSession({ stateDir, id }: ShownSession, sink: TextSink, what: 'log' | 'trajectory'): Promise<void> {
  const path = sessionLogPath(stateDir, id);
  try {
    if (what === 'log') await copyLog(path, sink);
    else await sink.write(`${JSON.stringify(await sessionTrajectory(id, path))}\n`);
  } catch (error) {
    throw new ServerError('INTERNAL', `The session cannot be exported: ${error instanceof Error ? error.message : 'unknown fault'}.`, {
      cause: error,
    });
  }
}

/** The same into a file, which appears when it is whole. @throws ServerError INTERNAL as {@link exportSession} */
export async function exportToFile(session: ShownSession, path: string, what: 'log' | 'trajectory'): Promise<void> {
  let file: FileSink;
  try {
    file = await FileSink.open(path);
  } catch (error) {
    throw new ServerError('INTERNAL', `${path} cannot be written: ${error instanceof Error ? error.message : 'unknown fault'}.`, {
      cause: error,
    });
  }
  try {
    await exportSession(session, file, what);
    await file.close();
  } catch (error) {
    await file.abandon();
    throw error;
  }
}
