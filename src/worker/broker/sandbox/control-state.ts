/**
 * What of a workspace other programs trust, as it stands at one moment: control files at the top of each root, and repositories wherever the search
 * finds them. Two of these say what a command has brought about that no mount could keep it from: things that were not there.
 */
import { readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isInside, isInsideAny } from '../../../shared/path-inside.ts';
import { controlPlaces } from '../../../shared/permission/control-files.ts';
import { DirectoryHandle, readSmall } from './directory-handle.ts';
import { gitOffence, gitPieces } from './git-offences.ts';
import { pointedDirectory } from './git-places.ts';
import { type Place, placeAt } from './hidden-places.ts';
import { presentPaths } from './present-paths.ts';
import { quickLook } from './quick-look.ts';

/** Something that is more than a file, and stands in no directory of git's: `link` and `text` are what it holds. */
interface Standing {
  readonly link?: string;
  /** Of a `.git` that is a file. */
  readonly text?: string;
  /** A `.git` that leads to a place where commands of this workspace may not write. */
  readonly isForeign?: true;
}

interface GitDirectory {
  readonly path: string;
  /** With what those say that are links. */
  readonly pieces: ReadonlyMap<string, string>;
}

export interface ControlState {
  readonly standing: ReadonlyMap<string, Standing>;
  /** By what tells a directory from another one that has taken its name. */
  readonly repositories: ReadonlyMap<string, GitDirectory>;
}

/** What is to go, or to be told. */
export interface Offence {
  /** Absolute. */
  readonly path: string;
  /** What had the name before. */
  readonly former?: Standing;
  /** What may stay of a configuration. */
  readonly harmless?: string;
}

export interface ControlPlacesOf {
  readonly roots: readonly string[];
  /** `.git` entries, absolute. */
  readonly dotGits: readonly string[];
  /** Directories of git's outside of the roots that commands may write in. */
  readonly elsewhere: readonly string[];
}

const longestPointer = 4_096;

export async function readControlState({ roots, dotGits, elsewhere }: ControlPlacesOf): Promise<ControlState> {
  const named = await Promise.all(roots.map(async (root) => (await presentPaths(root, controlPlaces)).map((name) => join(root, name))));
  const standing = new Map<string, Standing>();
  const directories = new Set(elsewhere);
  await Promise.all([
    ...named.flat().map(async (path) => standing.set(path, await standingAt(path))),
    ...dotGits.map(async (path) => {
      const entry = await quickLook(path);
      if (entry === undefined) return;
      if (entry.isDirectory()) {
        directories.add(path);
        return;
      }
      const text = entry.isFile() ? { text: (await readSmall(path, longestPointer)) ?? '' } : {};
      const behind = await behindPointer(path, text);
      const isOurs = behind === undefined || isInsideAny([...roots, ...elsewhere], behind.path);
      standing.set(path, { ...(await standingAt(path)), ...text, ...(isOurs ? {} : { isForeign: true }) });
      if (behind?.isDirectory === true && isInsideAny(roots, behind.path)) directories.add(behind.path);
    }),
  ]);
  const repositories = new Map<string, GitDirectory>();
  await Promise.all(
    [...directories]
      // What lies in another one is a part of that.
      .filter((path) => ![...directories].some((other) => other !== path && isInside(other, path)))
      .map(async (path) => {
        const entry = await quickLook(path);
        if (entry?.isDirectory() === true) repositories.set(`${entry.dev}:${entry.ino}`, { path, pieces: await gitPieces(path) });
      }),
  );
  return { standing, repositories };
}

async function behindPointer(path: string, { text }: Standing): Promise<Place | undefined> {
  return text === undefined ? await placeAt(path) : await pointedDirectory(path);
}

async function standingAt(path: string): Promise<Standing> {
  const link = await readlink(path).catch(() => undefined);
  return link === undefined ? {} : { link };
}

/** @param open paths in which nothing is held */
export async function newOffences(before: ControlState, after: ControlState, open: readonly string[]): Promise<Offence[]> {
  const standing = [...after.standing].flatMap(([path, now]) => standingOffence(path, before.standing.get(path), now));
  const ofGit = await Promise.all(
    [...after.repositories].map(([key, now]) => repositoryOffences(now, before.repositories.get(key)?.pieces ?? new Map())),
  );
  return [...standing, ...ofGit.flat()].filter(({ path }) => !isInsideAny(open, path));
}

/** What was there before was held there, unless it is a link or a pointer: those are compared by what they say. */
function standingOffence(path: string, former: Standing | undefined, now: Standing): Offence[] {
  const isPointer = basename(path) === '.git';
  if (former !== undefined && former.link === now.link && former.text === now.text) return [];
  // One that leads to a place of the workspace is as good as what is there, which is looked at by itself.
  if (isPointer && now.isForeign !== true) return [];
  return [{ path, ...(former === undefined ? {} : { former }) }];
}

async function repositoryOffences({ path, pieces }: GitDirectory, known: ReadonlyMap<string, string>): Promise<Offence[]> {
  const fresh = [...pieces].filter(([piece, link]) => known.get(piece) !== link).map(([piece]) => piece);
  if (fresh.length === 0) return [];
  const directory = await DirectoryHandle.open(path).catch(() => undefined);
  // Swapped this very moment: as a whole it is nothing to be trusted.
  if (directory === undefined) return [{ path }];
  try {
    const found = await Promise.all(fresh.map((piece) => gitOffence(directory, piece)));
    return found.flat().map(({ piece, ...more }) => ({ path: join(path, piece), ...more }));
  } finally {
    await directory.close();
  }
}
