/**
 * Puts a whole new content in a file's place: after a crash at any point there is the old content or the new, never half.
 *
 * The bytes go to a temporary file beside the target, reach the disk, and take the target's name by `rename`.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { lstat, open, rename, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { anchorDirectory } from './anchored-directory.ts';
import type { AnchoredDirectory } from './anchored-directory.ts';
import { pathChanged } from './file-access.ts';
import { versionOf } from './file-observations.ts';
import { FsFault, isMissing } from './fs-fault.ts';
import { requireRegular } from './open-regular-file.ts';

const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const permissionBits = 0o777;

export interface Replacement {
  /** Canonical. */
  readonly path: string;
  readonly shownPath: string;
  readonly data: Buffer;
  /** The version that must be in place, or `undefined` when there must be no file. */
  readonly expected: string | undefined;
  /** Permission bits of a file that is not there yet. */
  readonly mode?: number | undefined;
  readonly signal: AbortSignal;
}

/** The refusal for a file that is not in the version that was seen. */
export function staleFault(shownPath: string): FsFault {
  return new FsFault('FS_STALE', `${shownPath} has changed since it was read. Nothing was written. Read it again, then repeat the change.`);
}

/**
 * Writes, and answers the new version of the file. Parent directories are made as needed. The mode, and where allowed the
 * owner, of an existing file are kept; a new one gets `mode`, or 0666 less the umask.
 *
 * @throws FsFault FS_STALE, FS_PATH_CHANGED, FS_NOT_REGULAR_FILE; file system errors as they are; the target is untouched then
 */
export async function replaceFile(replacement: Replacement): Promise<string> {
  const directory = await anchorDirectory(dirname(replacement.path), replacement.shownPath);
  try {
    const target = directory.at(basename(replacement.path));
    const current = await currentStats(target, replacement);
    const temporary = directory.at(`.dsh-acp-${randomBytes(8).toString('hex')}.tmp`);
    const version = await writeTemporary(temporary, current, replacement).catch(async (error: unknown) => {
      await removeQuietly(temporary);
      throw error;
    });
    try {
      // Asked once more right before the rename: writing and syncing took its time.
      await currentStats(target, replacement);
      replacement.signal.throwIfAborted();
      await rename(temporary, target);
    } catch (error) {
      await removeQuietly(temporary);
      throw error;
    }
    await syncQuietly(directory);
    return version;
  } finally {
    await directory.close();
  }
}

/** Stats of what is in place, checked against what is expected there. */
async function currentStats(target: string, replacement: Replacement): Promise<Stats | undefined> {
  const { expected, shownPath } = replacement;
  let stats: Stats;
  try {
    stats = await lstat(target);
  } catch (error) {
    if (!isMissing(error)) {
      throw error;
    }
    if (expected !== undefined) {
      throw staleFault(shownPath);
    }
    return undefined;
  }
  if (stats.isSymbolicLink()) {
    throw pathChanged(shownPath);
  }
  requireRegular(stats, shownPath);
  if (expected === undefined || versionOf(stats) !== expected) {
    throw staleFault(shownPath);
  }
  return stats;
}

async function writeTemporary(temporary: string, current: Stats | undefined, replacement: Replacement): Promise<string> {
  // Closed to others until it has the mode of the file it replaces.
  const handle = await open(temporary, createFlags, current === undefined ? 0o666 : 0o600);
  try {
    await handle.writeFile(replacement.data);
    if (current !== undefined) {
      await keepOwnerAndMode(handle, current);
    } else if (replacement.mode !== undefined) {
      await handle.chmod(replacement.mode & permissionBits);
    }
    await handle.sync();
    return versionOf(await handle.stat());
  } finally {
    await handle.close();
  }
}

async function keepOwnerAndMode(handle: FileHandle, current: Stats): Promise<void> {
  const own = await handle.stat();
  if (own.uid !== current.uid || own.gid !== current.gid) {
    await handle.chown(current.uid, current.gid).catch(() => {
      // Only root may give a file away; the writer owns it then, as with any editor that renames.
    });
  }
  await handle.chmod(current.mode & permissionBits);
}

async function removeQuietly(temporary: string): Promise<void> {
  await unlink(temporary).catch(() => {
    // It was never made, or its directory is gone: the first error is the one to report.
  });
}

async function syncQuietly(directory: AnchoredDirectory): Promise<void> {
  await directory.sync().catch(() => {
    // Some file systems refuse to sync a directory. The file itself is complete either way.
  });
}
