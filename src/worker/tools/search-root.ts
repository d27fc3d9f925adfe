/**
 * The place a search starts from, held open while ripgrep runs, so that a swapped link cannot lead the search elsewhere.
 *
 * ripgrep is handed the kernel's name of the open directory or file (`/proc/PID/fd/N`) where there is one: it then starts at
 * what was checked, whatever the path is by now. Links below the root are never followed.
 */
import { realpathSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { openDirectory } from './anchored-directory.ts';
import { pathForExecution } from './file-access.ts';
import { FsFault } from './fs-fault.ts';
import { globFilter } from './glob-filter.ts';
import { openRegularFile } from './open-regular-file.ts';
import { kernelNamesOpenFiles } from './opened-path.ts';

export interface SearchRoot {
  /** Canonical path of what the call named: the one that was decided on. */
  readonly named: string;
  /** Canonical path of what is searched: that, or a directory below it. */
  readonly path: string;
  readonly isFile: boolean;
  /** Working directory for ripgrep. */
  readonly directory: string;
  /** What ripgrep is told to search, seen from there. */
  readonly target: string;
  /** ripgrep's options for the wanted files. */
  readonly options: readonly string[];
  /** A path as ripgrep printed it, absolute. */
  readonly found: (printed: string) => string;
  close(): Promise<void>;
}

export interface SearchPlace {
  /** As the call named it. */
  readonly path: string;
  readonly glob: string | undefined;
  readonly cwd: string;
}

/**
 * Opens the place of a call, the one that was decided on. The caller closes it.
 *
 * @throws FsFault FS_NOT_REGULAR_FILE for anything but a directory or a regular file, FS_PATH_CHANGED; file system errors as they are
 */
export async function openSearchRoot(args: object, place: SearchPlace): Promise<SearchRoot> {
  const canonical = pathForExecution(args, place.path, place.cwd);
  const stats = await lstat(canonical);
  if (stats.isDirectory()) {
    return directoryRoot(canonical, place);
  }
  if (!stats.isFile()) {
    // A FIFO given by name would be waited on.
    throw new FsFault('FS_NOT_REGULAR_FILE', `${place.path} is neither a directory nor a regular file, so it cannot be searched.`);
  }
  const { handle } = await openRegularFile(canonical, place.path);
  return {
    named: canonical,
    path: canonical,
    isFile: true,
    directory: dirname(canonical),
    target: kernelName(handle) ?? canonical,
    options: [],
    found: () => canonical,
    close: () => handle.close(),
  };
}

async function directoryRoot(canonical: string, place: SearchPlace): Promise<SearchRoot> {
  const filter = place.glob === undefined ? { options: [] } : globFilter(place.glob, canonical);
  const narrowed = filter.below === undefined ? canonical : join(canonical, filter.below);
  // Narrowing must not lead through a link: then the whole root is searched with the pattern, which follows none.
  const real = isReal(narrowed);
  const path = real ? narrowed : canonical;
  const handle = await openDirectory(path, path, place.path);
  return {
    named: canonical,
    path,
    isFile: false,
    directory: kernelName(handle) ?? path,
    target: './',
    options: real || place.glob === undefined ? filter.options : ['-g', place.glob],
    found: (printed) => join(path, printed),
    close: () => handle.close(),
  };
}

function isReal(path: string): boolean {
  try {
    return realpathSync.native(path) === path;
  } catch {
    // Not there: the search of the whole root will find nothing, which is the right answer.
    return false;
  }
}

function kernelName(handle: FileHandle): string | undefined {
  // Not /proc/self: the name is used by the child.
  return kernelNamesOpenFiles() ? `/proc/${process.pid}/fd/${handle.fd}` : undefined;
}
