/**
 * What git needs of a workspace, and what of it decides what others run: hooks and configuration, of the repository at its top and of those found
 * below. A work tree or submodule has its history elsewhere; that place is only believed when it points back, since a file of the workspace alone
 * could name anything.
 */
import { readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isInside, isInsideAny } from '../../../shared/path-inside.ts';
import { readSmall } from './directory-handle.ts';
import { type Place, placeAt, plainPlaceAt } from './hidden-places.ts';

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
const longestPointer = 4_096;
const longestConfig = 256 * 1024;

/** @param roots of the whole workspace */
export async function gitPlaces(root: string, roots: readonly string[]): Promise<GitPlaces> {
  const path = join(root, '.git');
  const of = { workTree: root, roots };
  const dotGit = await plainPlaceAt(path);
  if (dotGit === undefined) {
    const behindLink = await placeAt(path);
    const isOurs = behindLink?.isDirectory === true && isInsideAny(roots, behindLink.path);
    return isOurs ? await placesOf(behindLink.path, [], of) : nothing;
  }
  if (dotGit.isDirectory) return await placesOf(dotGit.path, [], of);
  const believed = await believedDirectory(root, dotGit.path);
  if (believed === undefined) return { ...nothing, held: [dotGit] };
  const places = await placesOf(believed, isInsideAny(roots, believed) ? [] : [believed], of);
  return { ...places, held: [...places.held, dotGit] };
}

/** Of repositories below the root, given their `.git`. They can be worked in; what holds them can be moved, and then they are watched. */
export async function nestedPlaces(dotGits: readonly string[], roots: readonly string[]): Promise<GitPlaces[]> {
  return await Promise.all(
    dotGits.slice(0, mostNested).map(async (path) => {
      const dotGit = await plainPlaceAt(path);
      const workTree = { workTree: dirname(path), roots };
      if (dotGit?.isDirectory === true) return await heldIn(path, workTree);
      const behind = dotGit === undefined ? await placeAt(path) : await pointedDirectory(path);
      return behind?.isDirectory === true && isInsideAny(roots, behind.path) ? await heldIn(behind.path, workTree) : nothing;
    }),
  );
}

interface WorkTree {
  readonly workTree: string;
  /** Of the whole workspace. */
  readonly roots: readonly string[];
}

/** Hooks and configuration of a repository, as far as they are there. */
async function heldIn(gitDirectory: string, of: WorkTree): Promise<GitPlaces> {
  const held = await foundOf(gitDirectory);
  if (!(await isOfGit(gitDirectory, held))) return nothing;
  const hooks = await hooksElsewhere(gitDirectory, of);
  return { ...nothing, pinned: [gitDirectory], held: [...held.filter((place) => place !== undefined), ...hooks] };
}

/** Where the configuration says that hooks are, or a link, as far as that is in the workspace. */
async function hooksElsewhere(gitDirectory: string, { workTree, roots }: WorkTree): Promise<Place[]> {
  const config = (await readSmall(join(gitDirectory, 'config'), longestConfig)) ?? '';
  const given = /^\s*hooksPath\s*=\s*"?([^"\n]+?)"?\s*$/im.exec(config)?.[1];
  const paths = [join(gitDirectory, 'hooks'), ...(given === undefined ? [] : [resolve(workTree, given)])];
  const found = await Promise.all(paths.map(placeAt));
  return found.filter((place) => place !== undefined).filter(({ path }) => isBelowAny(roots, path) && path !== paths[0]);
}

/** A root as a whole is not held: nothing could be done in it. */
function isBelowAny(roots: readonly string[], path: string): boolean {
  return isInsideAny(roots, path) && !roots.some((root) => isInside(path, root));
}

async function placesOf(gitDirectory: string, writable: readonly string[], of: WorkTree): Promise<GitPlaces> {
  const [found, elsewhere] = await Promise.all([foundOf(gitDirectory), hooksElsewhere(gitDirectory, of)]);
  const isGits = await isOfGit(gitDirectory, found);
  const hooks = join(gitDirectory, 'hooks');
  // Not every directory of this name is git's: then nothing is put into it.
  const lacksHooks = isGits && found[2] === undefined && (await isAbsent(hooks));
  const below = isGits ? await placesBelow(gitDirectory) : [];
  return {
    writable,
    pinned: [gitDirectory],
    held: [...found, ...below, ...elsewhere].filter((place) => place !== undefined),
    keptEmpty: lacksHooks ? [hooks] : [],
  };
}

async function foundOf(gitDirectory: string): Promise<(Place | undefined)[]> {
  return await Promise.all(['config', 'config.worktree', 'hooks'].map((name) => plainPlaceAt(join(gitDirectory, name))));
}

async function isOfGit(gitDirectory: string, [config]: readonly (Place | undefined)[]): Promise<boolean> {
  return config !== undefined && (await plainPlaceAt(join(gitDirectory, 'HEAD'))) !== undefined;
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
const mostNested = 32;

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

/** Where a `.git` that is a file sends git, whether or not that is so with any right. */
export async function pointedDirectory(file: string): Promise<Place | undefined> {
  try {
    const given = /^gitdir: (.+)$/m.exec((await readSmall(file, longestPointer)) ?? '')?.[1]?.trim();
    return given === undefined ? undefined : await placeAt(resolve(dirname(file), given));
  } catch {
    return undefined;
  }
}

/** What a work tree shares with its repository, or the own directory of a submodule; `undefined` unless both agree on it. */
async function believedDirectory(root: string, file: string): Promise<string | undefined> {
  try {
    const own = (await pointedDirectory(file))?.path;
    if (own === undefined) return undefined;
    if (basename(dirname(own)) === 'worktrees') {
      const back = resolve(own, ((await readSmall(join(own, 'gitdir'), longestPointer)) ?? '').trim());
      return (await realpath(back)) === (await realpath(file)) ? dirname(dirname(own)) : undefined;
    }
    if (!own.includes('/.git/modules/')) return undefined;
    const back = /^\s*worktree\s*=\s*(\S.*)$/m.exec((await readSmall(join(own, 'config'), longestConfig)) ?? '')?.[1]?.trim();
    return back !== undefined && (await realpath(resolve(own, back))) === root ? own : undefined;
  } catch {
    // Not a work tree of git, or one whose repository is gone.
    return undefined;
  }
}
