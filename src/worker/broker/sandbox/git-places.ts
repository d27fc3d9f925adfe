/**
 * What git needs of a workspace root, and what of it decides what others run: hooks and configuration. A linked work tree has its
 * history elsewhere; that place is only believed when it points back, since a file of the workspace alone could name anything.
 */
import { readdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Place, plainPlaceAt } from './hidden-places.ts';

export interface GitPlaces {
  /** To be written, outside the root. */
  readonly writable: readonly string[];
  /** Directories that must not be moved away, since something in them is held. */
  readonly pinned: readonly string[];
  readonly held: readonly Place[];
  /** Directories that are not there and must stay so; made empty, and not to be written. */
  readonly keptEmpty: readonly string[];
}

const nothing: GitPlaces = { writable: [], pinned: [], held: [], keptEmpty: [] };

export async function gitPlaces(root: string): Promise<GitPlaces> {
  const dotGit = await plainPlaceAt(join(root, '.git'));
  if (dotGit === undefined) return nothing;
  if (dotGit.isDirectory) return await placesOf(dotGit.path, []);
  const common = await commonDirectory(root, dotGit.path);
  if (common === undefined) return { ...nothing, held: [dotGit] };
  const places = await placesOf(common, [common]);
  return { ...places, held: [...places.held, dotGit] };
}

async function placesOf(gitDirectory: string, writable: readonly string[]): Promise<GitPlaces> {
  const names = ['config', 'config.worktree', 'hooks'];
  const found = await Promise.all(names.map((name) => plainPlaceAt(join(gitDirectory, name))));
  // Not every directory of this name is git's: then nothing is put into it.
  const isGits = found[0] !== undefined && (await plainPlaceAt(join(gitDirectory, 'HEAD'))) !== undefined;
  const hooks = join(gitDirectory, 'hooks');
  const lacksHooks = isGits && found[2] === undefined && (await isAbsent(hooks));
  const below = isGits ? await placesBelow(gitDirectory) : [];
  return {
    writable,
    pinned: [gitDirectory],
    held: [...found, ...below].filter((place) => place !== undefined),
    keptEmpty: lacksHooks ? [hooks] : [],
  };
}

/** The same of submodules, and the pointers of linked work trees; as far as they are there. */
async function placesBelow(gitDirectory: string): Promise<(Place | undefined)[]> {
  const [modules, worktrees] = await Promise.all(['modules', 'worktrees'].map((name) => namesIn(join(gitDirectory, name))));
  const paths = [
    ...(modules ?? []).flatMap((name) => ['config', 'hooks'].map((part) => join(gitDirectory, 'modules', name, part))),
    ...(worktrees ?? []).flatMap((name) =>
      ['commondir', 'gitdir', 'config.worktree'].map((part) => join(gitDirectory, 'worktrees', name, part)),
    ),
  ];
  return await Promise.all(paths.map((path) => plainPlaceAt(path)));
}

/** More of them are not looked at: each costs a mount. */
const mostNames = 64;

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).slice(0, mostNames);
  } catch {
    return []; // There is none.
  }
}

async function isAbsent(path: string): Promise<boolean> {
  // A link is there, although it is no place of its own.
  return await realpath(path).then(
    () => false,
    () => true,
  );
}

/** The directory that a linked work tree shares with its repository; `undefined` unless both agree on it. */
async function commonDirectory(root: string, file: string): Promise<string | undefined> {
  try {
    const given = /^gitdir: (.+)$/m.exec(await readFile(file, 'utf8'))?.[1]?.trim();
    if (given === undefined) return undefined;
    const own = await realpath(resolve(root, given));
    const back = resolve(own, (await readFile(join(own, 'gitdir'), 'utf8')).trim());
    if ((await realpath(back)) !== (await realpath(file)) || basename(dirname(own)) !== 'worktrees') return undefined;
    return dirname(dirname(own));
  } catch {
    // Not a work tree of git, or one whose repository is gone.
    return undefined;
  }
}
