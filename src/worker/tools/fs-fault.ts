/**
 * Turns what the file system refuses into an outcome that a model can act on.
 *
 * Texts name the path as the model gave it, never an errno alone and never a stack.
 */
import { existsSync } from 'node:fs';
import { aborted, failed } from './outcome.ts';
import type { ToolOutcome } from './tool.ts';

export type FsCode =
  | 'FS_NOT_FOUND'
  | 'FS_NOT_DIRECTORY'
  | 'FS_NOT_TEXT'
  | 'FS_NOT_REGULAR_FILE'
  | 'FS_TOO_LARGE'
  | 'FS_PERMISSION_DENIED'
  | 'FS_INVALID_PATH'
  | 'FS_PATH_CHANGED'
  | 'FS_IO_ERROR'
  | 'FS_STALE'
  | 'FS_NOT_OBSERVED'
  | 'FS_OUT_OF_RANGE';

/** A refusal of ours on the way to a file. Thrown only inside the file tools, and caught by {@link faultOutcome}. */
export class FsFault extends Error {
  readonly code: FsCode;

  constructor(code: FsCode, message: string) {
    super(message);
    this.name = 'FsFault';
    this.code = code;
  }
}

const byErrno: Readonly<Record<string, readonly [FsCode, string]>> = {
  ENOENT: ['FS_NOT_FOUND', 'does not exist'],
  ENOTDIR: ['FS_NOT_DIRECTORY', 'cannot be reached: a part of its path is not a directory'],
  EISDIR: ['FS_NOT_REGULAR_FILE', 'is a directory, not a file'],
  ENXIO: ['FS_NOT_REGULAR_FILE', 'is not a regular file'],
  EACCES: ['FS_PERMISSION_DENIED', 'may not be opened by this user'],
  EPERM: ['FS_PERMISSION_DENIED', 'may not be changed by this user'],
  EROFS: ['FS_PERMISSION_DENIED', 'lies on a read-only file system'],
  ELOOP: ['FS_PATH_CHANGED', 'is a symbolic link now, or a loop of them; it was not one when the call was checked'],
  ENAMETOOLONG: ['FS_INVALID_PATH', 'is too long for a path'],
  ENOSPC: ['FS_IO_ERROR', 'could not be written: the disk is full'],
  EDQUOT: ['FS_IO_ERROR', 'could not be written: the quota is used up'],
  EMFILE: ['FS_IO_ERROR', 'could not be opened: too many files are open in this process; try again later'],
  ENFILE: ['FS_IO_ERROR', 'could not be opened: too many files are open on this machine; try again later'],
};

function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** True for the error of a path that is not there. */
export function isMissing(error: unknown): boolean {
  const code = errnoOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** The error for a file that is neither on the disk nor anywhere else. */
export function missingFile(): Error {
  return Object.assign(new Error('there is no such file'), { code: 'ENOENT' });
}

/**
 * The outcome for whatever was thrown on the way to `shownPath`.
 *
 * @param cwd the session's working directory: when it is gone, that is the fault to name
 */
export function faultOutcome(error: unknown, shownPath: string, cwd: string): ToolOutcome {
  if (error instanceof FsFault) {
    return failed(error.code, error.message);
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return aborted();
  }
  const errno = errnoOf(error);
  if (errno === 'ENOENT' && !existsSync(cwd)) {
    return failed('FS_NOT_FOUND', `The session's working directory ${cwd} no longer exists. Nothing was done.`);
  }
  const known = errno === undefined ? undefined : byErrno[errno];
  if (known !== undefined) {
    return failed(known[0], `${shownPath} ${known[1]}.`);
  }
  return failed('FS_IO_ERROR', `${shownPath} could not be used${errno === undefined ? '' : ` (${errno})`}.`);
}
