/**
 * How a path is shown to a person: short when it lies in the session's working directory, whole when it does not.
 */
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { cleanTitle } from './title.ts';

/** True when `path` is `root` or below it, by whole segments: `/a_evil` is not inside `/a`. Both absolute. */
export function isInside(path: string, root: string): boolean {
  const rest = relative(root, path);
  return rest === '' || (rest !== '..' && !rest.startsWith(`..${sep}`) && !isAbsolute(rest));
}

/** Relative to `cwd` when inside it (`.` for `cwd` itself), else absolute. Not cleaned: for text that a model reads. */
export function relativePath(path: string, cwd: string): string {
  const absolute = resolve(cwd, path);
  if (!isInside(absolute, cwd)) {
    return absolute;
  }
  return relative(cwd, absolute) || '.';
}

/** The same for titles: one clean line. */
export function displayPath(path: string, cwd: string): string {
  return cleanTitle(relativePath(path, cwd));
}
