/**
 * Takes a file away, and directories that it leaves empty. No tool does that of its own: it is how a created file is undone.
 */
import { lstat, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { type AnchoredDirectory, existingDirectory } from './anchored-directory.ts';
import { pathChanged } from './file-access.ts';
import { versionOf } from './file-observations.ts';
import { requireRegular } from './open-regular-file.ts';
import { staleFault } from './replace-file.ts';
import type { ToolContext } from './tool.ts';

export interface Removal {
  /** Canonical. */
  readonly path: string;
  readonly shownPath: string;
  /** The version that must be in place. */
  readonly expected: string;
}

/** @throws FsFault FS_STALE, FS_PATH_CHANGED, FS_NOT_REGULAR_FILE; file system errors as they are; the file is still there then */
export async function removeFile(removal: Removal, context: Pick<ToolContext, 'files' | 'signal' | 'keepBefore'>): Promise<void> {
  const { path, shownPath, expected } = removal;
  await context.keepBefore?.({ ...removal, data: null });
  const directory = await existingDirectory(dirname(path), shownPath);
  try {
    const target = directory.at(basename(path));
    const stats = await lstat(target);
    if (stats.isSymbolicLink()) throw pathChanged(shownPath);
    requireRegular(stats, shownPath);
    if (versionOf(stats) !== expected) throw staleFault(shownPath);
    context.signal.throwIfAborted();
    await unlink(target);
    await syncQuietly(directory);
  } finally {
    await directory.close();
  }
  context.files.forget(path);
}

/** Removes a directory if it is empty and still where its path says. Says whether it did; never rejects. */
export async function removeEmptyDirectory(path: string): Promise<boolean> {
  try {
    const parent = await existingDirectory(dirname(path), path);
    try {
      await rmdir(parent.at(basename(path)));
      await syncQuietly(parent);
      return true;
    } finally {
      await parent.close();
    }
  } catch {
    return false; // Something is in it, or it is not what it was: then it is not ours to remove.
  }
}

async function syncQuietly(directory: AnchoredDirectory): Promise<void> {
  await directory.sync().catch(() => {
    // Some file systems refuse to sync a directory. The file is gone either way.
  });
}
