/**
 * A directory held open, so that names below it cannot be led elsewhere while a file in it is replaced.
 *
 * Node has no `openat`. On Linux `/proc/self/fd/N/name` does the same: the kernel starts at the open directory, whatever its
 * path is by now. Elsewhere the path is checked after opening, which leaves a very short race.
 */
import { constants } from 'node:fs';
import { lstat, mkdir, open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pathChanged } from './file-access.ts';
import { FsFault, isMissing } from './fs-fault.ts';
import { checkOpened, kernelNamesOpenFiles } from './opened-path.ts';

const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export interface AnchoredDirectory {
  /** A path of `name` directly below the directory, good for file system calls while this is open. */
  at(name: string): string;
  /** Makes renames in the directory durable. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens `path`, canonical, and makes what is missing of it.
 *
 * @throws FsFault FS_PATH_CHANGED when a part of it was swapped; file system errors as they are
 */
export async function anchorDirectory(path: string, shownPath: string): Promise<AnchoredDirectory> {
  const { existing, missing } = await splitAtExisting(path);
  let current = existing;
  let handle = await openDirectory(existing, existing, shownPath);
  for (const name of missing) {
    const below = childPath(handle, current, name);
    current = join(current, name);
    try {
      await mkdir(below).catch(ignoreExisting);
      const next = await openDirectory(below, current, shownPath);
      await handle.close();
      handle = next;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
  return anchored(handle, path);
}

/** Opens `path`, canonical, which must be there. @throws as {@link anchorDirectory} */
export async function existingDirectory(path: string, shownPath: string): Promise<AnchoredDirectory> {
  return anchored(await openDirectory(path, path, shownPath), path);
}

function anchored(handle: FileHandle, path: string): AnchoredDirectory {
  return {
    at: (name) => childPath(handle, path, name),
    sync: () => handle.sync(),
    close: () => handle.close(),
  };
}

function childPath(handle: FileHandle, path: string, name: string): string {
  return kernelNamesOpenFiles() ? `/proc/self/fd/${handle.fd}/${name}` : join(path, name);
}

/** The deepest directory that exists, and the names below it that do not, outermost first. */
async function splitAtExisting(path: string): Promise<{ existing: string; missing: string[] }> {
  const missing: string[] = [];
  let existing = path;
  for (;;) {
    try {
      await lstat(existing);
      return { existing, missing };
    } catch (error) {
      if (!isMissing(error) || dirname(existing) === existing) {
        throw error;
      }
    }
    missing.unshift(basename(existing));
    existing = dirname(existing);
  }
}

/**
 * Opens a directory by `openPath` and proves that it is `canonical`. The caller closes the handle.
 *
 * @throws FsFault FS_NOT_DIRECTORY, FS_PATH_CHANGED; file system errors as they are
 */
export async function openDirectory(openPath: string, canonical: string, shownPath: string): Promise<FileHandle> {
  const handle = await open(openPath, directoryFlags).catch((error: unknown) => {
    throw isNotDirectory(error) ? notDirectory(shownPath) : error;
  });
  try {
    if ((await checkOpened(handle, canonical)) !== 'same') {
      throw pathChanged(shownPath);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function ignoreExisting(error: unknown): void {
  // Another call made it meanwhile. If it is no directory, opening it says so.
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) {
    throw error;
  }
}

function isNotDirectory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOTDIR';
}

function notDirectory(shownPath: string): FsFault {
  return new FsFault('FS_NOT_DIRECTORY', `${shownPath} cannot be reached: a part of its path is not a directory.`);
}
