/**
 * How a path is shown to a person: short when it lies in the session's working directory, whole when it does not.
 */
import { relative, resolve } from 'node:path';
import { isInside } from '../../shared/path-inside.ts';
import { titleLine } from './title-line.ts';

/** Relative to `cwd` when inside it (`.` for `cwd` itself), else absolute. Not cleaned: for text that a model reads. */
export function relativePath(path: string, cwd: string): string {
  const absolute = resolve(cwd, path);
  if (!isInside(cwd, absolute)) {
    return absolute;
  }
  return relative(cwd, absolute) || '.';
}

/** The same for titles: one clean line. */
export function displayPath(path: string, cwd: string): string {
  return titleLine(relativePath(path, cwd));
}
