/**
 * Files that a search of a directory leaves out, since the permission to read them is asked for file by file: those that
 * may hold secrets. A call that names such a file, or a place of such files, was decided on as that and searches it.
 *
 * Which files there are is told by their names alone: what is in them has no part in it.
 */
import { isSecretFile, secretFileNames, secretPlaceGlobs } from '../../shared/permission/secret-files.ts';
import { runRipgrep } from './ripgrep.ts';
import type { SearchRoot } from './search-root.ts';
import type { ToolContext } from './tool.ts';

/** Head and tail of the list together. */
const keepBytes = 2 * 1024 * 1024;

/** Whether the search must not show what is in the file at this absolute path. */
export function leavesOut(root: SearchRoot, path: string): boolean {
  return !searchesAll(root) && isSecretFile(path);
}

/** As a type of files, since a directory may well be called `.env`. A glob of the call goes before it, and leaves the rest to {@link leavesOut}. */
const withoutSecrets: readonly string[] = [
  ...secretFileNames.flatMap((name) => [
    '--type-add',
    `secret:${name.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)}`,
  ]),
  '--type-not=secret',
  ...secretPlaceGlobs.flatMap((glob) => ['--iglob', `!${glob}`]),
];

/** ripgrep's options that keep it from reading most of these files. */
export function leftOutOptions(root: SearchRoot): readonly string[] {
  return searchesAll(root) ? [] : withoutSecrets;
}

/** The note on what was left out, if anything was. */
export async function countLeftOut(context: ToolContext, root: SearchRoot, ripgrepPath: string): Promise<readonly string[]> {
  if (searchesAll(root)) return [];
  const args = ['--files', '--hidden', '--null', ...root.options, '-g', '!.git', '--', root.target];
  const run = await runRipgrep(context, root, { ripgrepPath, args, keepBytes });
  // Whatever kept it from running is told by the search itself.
  if (!run.ok) return [];
  const { stdout, timedOut } = run.result;
  const printed = stdout.text.split('\0');
  // What follows the last NUL is nothing, or a path that was cut.
  printed.pop();
  const count = printed.filter((path) => isSecretFile(root.found(path))).length;
  if (count === 0) return [];
  const least = stdout.truncated || timedOut ? 'at least ' : '';
  const files = count === 1 ? '1 file' : `${count} files`;
  return [`(${least}${files} that may hold secrets, such as .env or keys, left out; to search one, give it as path)`];
}

function searchesAll(root: SearchRoot): boolean {
  return root.isFile || isSecretFile(root.named);
}
