/**
 * Opens a regular file for reading and nothing else: no FIFO that would block, no device, no socket, no swapped link.
 */
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { pathChanged } from './file-access.ts';
import { FsFault } from './fs-fault.ts';
import { checkOpened } from './opened-path.ts';

const attempts = 5;

export interface OpenedFile {
  readonly handle: FileHandle;
  /** Of the open file itself, not of its name. */
  readonly stats: Stats;
}

/** The sentence for anything that is not a regular file. */
export function requireRegular(stats: Stats, shownPath: string): void {
  if (stats.isFile()) {
    return;
  }
  const kind = describeKind(stats);
  const advice = stats.isDirectory() ? ' Use glob to list it.' : '';
  throw new FsFault('FS_NOT_REGULAR_FILE', `${shownPath} is ${kind}; only regular files can be opened.${advice}`);
}

function describeKind(stats: Stats): string {
  if (stats.isDirectory()) {
    return 'a directory';
  }
  if (stats.isFIFO()) {
    return 'a FIFO (named pipe)';
  }
  if (stats.isSocket()) {
    return 'a socket';
  }
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'not a regular file';
}

/**
 * Opens `path`, canonical. The caller closes the handle.
 *
 * @throws FsFault FS_NOT_REGULAR_FILE, FS_PATH_CHANGED; file system errors as they are
 */
export async function openRegularFile(path: string, shownPath: string): Promise<OpenedFile> {
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const opened = await tryOpen(path, shownPath);
    if (opened !== undefined) {
      return opened;
    }
  }
  throw new FsFault('FS_IO_ERROR', `${shownPath} is being replaced again and again by another program. Try again later.`);
}

async function tryOpen(path: string, shownPath: string): Promise<OpenedFile | undefined> {
  // Looked at before it is opened: opening a device can already have an effect.
  const named = await lstat(path);
  if (named.isSymbolicLink()) {
    throw pathChanged(shownPath);
  }
  requireRegular(named, shownPath);
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stats = await handle.stat();
    requireRegular(stats, shownPath);
    const answer = await checkOpened(handle, path);
    if (answer === 'same') {
      return { handle, stats };
    }
    if (answer === 'elsewhere') {
      throw pathChanged(shownPath);
    }
  } catch (error) {
    await handle.close();
    throw error;
  }
  await handle.close();
  return undefined;
}
