/**
 * Which of many known names are there: one listing of the directory instead of a question for each name, since all this is done before each
 * command.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { quickLook } from './quick-look.ts';

/** Those of the relative paths that may be there. A directory that cannot be read holds nothing that a command could reach. Never rejects. */
export async function presentPaths(base: string, paths: readonly string[]): Promise<string[]> {
  const names = await readdir(base).then(
    (found) => new Set(found),
    () => new Set<string>(),
  );
  const possible = paths.filter((path) => names.has(path.split('/', 1)[0] ?? ''));
  const present = await Promise.all(possible.map(async (path) => !path.includes('/') || (await quickLook(join(base, path))) !== undefined));
  return possible.filter((_, index) => present[index]);
}
