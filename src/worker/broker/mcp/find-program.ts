/**
 * Which program a server's command is. A bare name is looked up here and not by the system, since a PATH may hold `.` or
 * directories of the workspace, where a repository could put a program of that name.
 */
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { isInside } from '../../../shared/path-inside.ts';

/** The absolute path; `undefined` when there is no such program where one is looked for. */
export async function findProgram(
  command: string,
  searchPath: string | undefined,
  workspace: readonly string[],
): Promise<string | undefined> {
  if (isAbsolute(command)) return command;
  for (const directory of (searchPath ?? '').split(delimiter)) {
    if (!isAbsolute(directory)) continue;
    const path = join(directory, command);
    if (await isProgramOutside(path, directory, workspace)) return path;
  }
  return undefined;
}

async function isProgramOutside(path: string, directory: string, workspace: readonly string[]): Promise<boolean> {
  try {
    const place = await realpath(directory);
    if (workspace.some((root) => isInside(root, place))) return false;
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    // Not there, or not to be run: the next directory may have it.
    return false;
  }
}
