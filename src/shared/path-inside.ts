/** The workspace boundary, as a question about two canonical paths. */
import { isAbsolute, relative, sep } from 'node:path';

/** Whether an absolute path is the directory or below it; compared name by name, so `/a_evil` is not inside `/a`. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** Whether the path is one of the directories, or below one. */
export function isInsideAny(directories: readonly string[], path: string): boolean {
  return directories.some((directory) => isInside(directory, path));
}
