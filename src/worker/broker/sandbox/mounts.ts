/**
 * The file system of a contained command: everything to read, the workspace to write, and in both what is hidden or held. Made anew for each
 * command, since the workspace changes.
 */
import { basename, dirname, join, relative } from 'node:path';
import { isInside, isInsideAny } from '../../../shared/path-inside.ts';
import { controlPlaces } from '../../../shared/permission/control-files.ts';
import { DirectoryHandle } from './directory-handle.ts';
import { type GitPlaces, gitPlaces, nestedPlaces } from './git-places.ts';
import { type HiddenPlaces, type Place, placeAt, plainPlaceAt } from './hidden-places.ts';
import { presentPaths } from './present-paths.ts';

export type Mount =
  /** What is at `from`, which is canonical, or at `path` itself, to be opened there and nowhere else. Without it there is no such mount. */
  | { readonly kind: 'bind' | 'ro-bind'; readonly path: string; readonly from?: string }
  /** Nothing of what is there. `blank` is for files. */
  | { readonly kind: 'tmpfs' | 'blank' | 'remount-ro'; readonly path: string };

export interface MountWish {
  /** Canonical directories that may be written. */
  readonly roots: readonly string[];
  /** Absolute; may be missing. */
  readonly writable: readonly string[];
  /** What stands in the place of `/tmp`, absolute; a new one for each command when absent. */
  readonly tmp: string | undefined;
  /** Where the outputs of this session are: to be read although it may lie in a hidden place. */
  readonly spillDir: string | undefined;
  /** `.git` entries found in the roots, absolute. */
  readonly dotGits: readonly string[];
}

export interface MountPlan {
  /** In order, behind those of the whole file system. */
  readonly mounts: readonly Mount[];
  /** Canonical paths in which nothing is held. */
  readonly opened: readonly string[];
  /** Directories of git's outside of the roots that may be written in. */
  readonly gitElsewhere: readonly string[];
}

export async function planMounts(wish: MountWish, { hidden, shown, sockets }: HiddenPlaces): Promise<MountPlan> {
  // The root of the file system would bring back all that is hidden: such a workspace can only be read.
  const roots = wish.roots.filter((root) => root !== '/');
  const [opened, spill, tmp] = await Promise.all([canonical(wish.writable), canonical([wish.spillDir]), canonical([wish.tmp])]);
  const isOpened = (path: string): boolean => isInsideAny(opened, path);
  const held = await heldMounts({ ...wish, roots }, isOpened);
  const masks = hidden.filter(({ path }) => !isOpened(path) && path !== '/tmp' && path !== '/var/tmp');
  const masksWithin = masks.filter(({ path }) => isInsideAny(roots, path));
  const masksAround = masks.filter((place) => !masksWithin.includes(place));
  const maskPaths = masks.map(({ path }) => path);
  const isCovered = (path: string): boolean => isInsideAny(roots, path) && !isInsideAny(maskPaths, path);
  const mounts: Mount[] = [
    ...(tmp[0] === undefined ? [{ kind: 'tmpfs', path: '/tmp' } as const] : [{ kind: 'bind', path: '/tmp', from: tmp[0] } as const]),
    ...(hidden.some(({ path }) => path === '/var/tmp') ? [{ kind: 'tmpfs', path: '/var/tmp' } as const] : []),
    ...masksAround.map(mask),
    ...shown.map(readOnly),
    ...spill.map(readOnly),
    ...sockets.filter((path) => !isOpened(path)).map((path) => ({ kind: 'blank', path }) as const),
    ...roots.map(writable),
    ...masksWithin.map(mask),
    ...held.mounts,
    // What a root holds anyway needs no mount: a file that is one cannot be replaced.
    ...opened.filter((path) => !isCovered(path)).map(writable),
    ...masks.filter(({ isDirectory }) => isDirectory).map(({ path }) => ({ kind: 'remount-ro', path }) as const),
  ];
  return { mounts, opened, gitElsewhere: held.gitElsewhere };
}

async function canonical(paths: readonly (string | undefined)[]): Promise<string[]> {
  const found = await Promise.all(paths.map(async (path) => (path === undefined ? undefined : await placeAt(path))));
  return found.flatMap((place) => place?.path ?? []);
}

function writable(path: string): Mount {
  return { kind: 'bind', path };
}

function readOnly(path: string): Mount {
  return { kind: 'ro-bind', path };
}

function mask({ path, isDirectory }: Place): Mount {
  return { kind: isDirectory ? 'tmpfs' : 'blank', path };
}

/**
 * Holds what in the workspace other programs trust. What holds something is bound onto itself: a directory that is a mount cannot be moved
 * out of the way. A file that is not there cannot be held without making it: see {@link ControlGuard}.
 */
async function heldMounts(
  { roots, dotGits }: Pick<MountWish, 'roots' | 'dotGits'>,
  isOpened: (path: string) => boolean,
): Promise<{ readonly mounts: Mount[]; readonly gitElsewhere: readonly string[] }> {
  const [tops, nested, controls] = await Promise.all([
    Promise.all(roots.map((root) => gitPlaces(root, roots))),
    nestedPlaces(
      dotGits.filter((path) => !roots.includes(dirname(path))),
      roots,
    ),
    Promise.all(roots.map(controlPlacesOf)),
  ]);
  const ofGit: GitPlaces[] = [...tops, ...nested];
  const gitElsewhere = tops.flatMap((git) => git.writable);
  const pinned = new Set(ofGit.flatMap((git) => git.pinned));
  for (const [index, root] of roots.entries()) {
    const places = [...(tops[index]?.held ?? []), ...(controls[index] ?? [])];
    for (const { path } of places) for (const way of waysTo(root, path)) pinned.add(way);
  }
  const empty = tops.flatMap((git) => git.keptEmpty);
  await Promise.all(empty.map(makeEmpty));
  const held = [...ofGit.flatMap((git) => git.held.map(({ path }) => path)), ...controls.flat().map(({ path }) => path), ...empty];
  const mounts = [
    ...[...new Set([...gitElsewhere, ...[...pinned].sort((a, b) => a.length - b.length)])].map(writable),
    ...[...new Set(held.filter((path) => !isOpened(path)))].map(readOnly),
  ];
  return { mounts, gitElsewhere };
}

/** Where that cannot be done it stays a matter of the look behind the command. */
async function makeEmpty(path: string): Promise<void> {
  const parent = await DirectoryHandle.open(dirname(path)).catch(() => undefined);
  await parent?.makeDirectory(basename(path)).catch(() => undefined);
  await parent?.close();
}

/** Of a link what it leads to, as far as that is in the root. */
async function controlPlacesOf(root: string): Promise<Place[]> {
  const names = await presentPaths(root, controlPlaces);
  const found = await Promise.all(
    names.map(async (name) => {
      const path = join(root, name);
      const plain = await plainPlaceAt(path);
      return plain ?? (await placeAt(path));
    }),
  );
  return found.filter((place) => place !== undefined).filter(({ path }) => isInside(root, path) && path !== root);
}

/** The directories between the root and a path, the outer ones first. */
function waysTo(root: string, path: string): string[] {
  const ways: string[] = [];
  for (let way = dirname(path); isInside(root, way) && relative(root, way) !== ''; way = dirname(way)) ways.unshift(way);
  return ways;
}
