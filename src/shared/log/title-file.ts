/**
 * A session's title where a list can have it at once: beside the log, for titles that stand too deep in it.
 *
 * The log is the truth: the file is made from it, made again when the session is opened and it is missing, and nothing but the
 * list reads it.
 */
import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, readSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sessionTitle } from './session-title.ts';

const mostBytes = 1024;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** @param sessionDir the session's own directory, beside its log */
function titlePath(sessionDir: string): string {
  return join(sessionDir, 'title');
}

/** The title; `undefined` when there is none. Reads 1 KB at most and never throws. */
export function readTitleFile(sessionDir: string): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(titlePath(sessionDir), readFlags);
    if (!fstatSync(fd).isFile()) return undefined;
    const bytes = Buffer.allocUnsafe(mostBytes);
    return sessionTitle(bytes.toString('utf8', 0, readSync(fd, bytes, 0, mostBytes, 0)));
  } catch {
    return undefined; // Most sessions have none.
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Replaces the title as a whole. Directory 0700, file 0600. @throws the system's error */
export function writeTitleFile(sessionDir: string, title: string): void {
  if (mkdirSync(sessionDir, { recursive: true, mode: 0o700 }) !== undefined) chmodSync(sessionDir, 0o700);
  const path = titlePath(sessionDir);
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, title, { mode: 0o600 });
  renameSync(unfinished, path);
}
