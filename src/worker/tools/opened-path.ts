/**
 * Proof that an open file or directory is the one that its canonical path names.
 *
 * O_NOFOLLOW guards the last name only; a directory on the way can be swapped for a link between check and open. The kernel's
 * own answer (`/proc/self/fd`) closes that gap without a race; where it is not to be had, paths and inodes are compared.
 */
import { closeSync, constants, openSync, readlinkSync, realpathSync } from 'node:fs';
import { lstat, readlink, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

const deletedMark = ' (deleted)';

let kernelAnswers: boolean | undefined;

/** True when `/proc/self/fd/N` names open files truly here; tried once with a file that surely exists. */
export function kernelNamesOpenFiles(): boolean {
  kernelAnswers ??= tryKernel();
  return kernelAnswers;
}

function tryKernel(): boolean {
  if (process.platform !== 'linux') {
    return false;
  }
  try {
    const path = realpathSync.native(process.execPath);
    const fd = openSync(path, constants.O_RDONLY);
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } finally {
      closeSync(fd);
    }
  } catch {
    // No /proc, or one that does not answer: the comparison of paths and inodes is used instead.
    return false;
  }
}

/**
 * Whether `handle` is `path`, canonical. `replaced` means that the file was renamed over or removed since it was opened,
 * which an honest writer does too: open again.
 */
export async function checkOpened(handle: FileHandle, path: string): Promise<'same' | 'replaced' | 'elsewhere'> {
  if (kernelNamesOpenFiles()) {
    const actual = await readlink(`/proc/self/fd/${handle.fd}`);
    if (actual === path) {
      return 'same';
    }
    return actual === `${path}${deletedMark}` ? 'replaced' : 'elsewhere';
  }
  const [opened, named, canonical] = await Promise.all([handle.stat(), lstat(path), realpath(path)]);
  if (canonical !== path) {
    return 'elsewhere';
  }
  return opened.ino === named.ino && opened.dev === named.dev ? 'same' : 'replaced';
}
