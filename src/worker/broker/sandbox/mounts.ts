/**
 * The arguments that make the file system of a contained command: everything to read, the workspace to write, and in both what
 * is hidden or held. Made anew for each command, since the workspace changes.
 */
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isInside, isInsideAny } from '../../../shared/path-inside.ts';
import { controlPlaces } from '../../../shared/permission/control-files.ts';
import { gitPlaces } from './git-places.ts';
import { type HiddenPlaces, type Place, placeAt, plainPlaceAt } from './hidden-places.ts';

export interface MountWish {
  /** Canonical directories that may be written. */
  readonly roots: readonly string[];
  /** Absolute; may be missing. */
  readonly writable: readonly string[];
  /** What stands in the place of `/tmp`; a new one for each command when absent. */
  readonly tmp: string | undefined;
  /** Where the outputs of this session are: to be read although it may lie in a hidden place. */
  readonly spillDir: string | undefined;
}

/** Devices and processes are its own. */
const everythingToRead = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'];

export async function mountArguments(wish: MountWish, { hidden, shown }: HiddenPlaces): Promise<string[]> {
  // The root of the file system would bring back all that is hidden: such a workspace can only be read.
  const roots = wish.roots.filter((root) => root !== '/');
  const writable = (await Promise.all(wish.writable.map(placeAt))).flatMap((place) => place?.path ?? []);
  const spill = wish.spillDir === undefined ? undefined : await placeAt(wish.spillDir);
  const isOpened = ({ path }: Place): boolean => isInsideAny(writable, path);
  const held = await Promise.all(roots.map((root) => heldArguments(root, isOpened)));
  const masks = hidden.filter((place) => !isOpened(place) && place.path !== '/tmp' && place.path !== '/var/tmp');
  const masksWithin = masks.filter(({ path }) => isInsideAny(roots, path));
  const masksAround = masks.filter((place) => !masksWithin.includes(place));
  return [
    ...everythingToRead,
    ...(wish.tmp === undefined ? ['--tmpfs', '/tmp'] : ['--bind', wish.tmp, '/tmp']),
    ...(hidden.some(({ path }) => path === '/var/tmp') ? ['--tmpfs', '/var/tmp'] : []),
    ...masksAround.flatMap(mask),
    ...shown.flatMap((path) => ['--ro-bind', path, path]),
    ...(spill === undefined ? [] : ['--ro-bind', spill.path, spill.path]),
    ...roots.flatMap(bind),
    ...masksWithin.flatMap(mask),
    ...held.flat(),
    // What a root holds anyway needs no mount: a file that is one cannot be replaced.
    ...writable
      .filter(
        (path) =>
          !isInsideAny(roots, path) ||
          isInsideAny(
            masks.map((place) => place.path),
            path,
          ),
      )
      .flatMap(bind),
    ...masks.filter(({ isDirectory }) => isDirectory).flatMap(({ path }) => ['--remount-ro', path]),
  ];
}

function bind(path: string): string[] {
  return ['--bind-try', path, path];
}

function mask({ path, isDirectory }: Place): string[] {
  return isDirectory ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path];
}

/**
 * Holds what in a root other programs trust. What holds something is bound onto itself: a directory that is a mount cannot be moved
 * out of the way. A file that is not there cannot be held without making it: see {@link ControlFileWatch}.
 */
async function heldArguments(root: string, isOpened: (place: Place) => boolean): Promise<string[]> {
  const git = await gitPlaces(root);
  const places = (await Promise.all(controlPlaces.map((name) => heldPlace(root, name)))).filter((place) => place !== undefined);
  const pinned = new Set([...git.pinned, ...places.flatMap(({ path }) => waysTo(root, path))]);
  const held = [...git.held, ...places].filter((place) => !isOpened(place)).map(({ path }) => path);
  await Promise.all(git.keptEmpty.map((path) => mkdir(path).catch(() => undefined)));
  return [
    ...[...new Set([...git.writable, ...[...pinned].sort((a, b) => a.length - b.length)])].flatMap(bind),
    ...[...held, ...git.keptEmpty].flatMap((path) => ['--ro-bind-try', path, path]),
  ];
}

/** Nothing behind a link: that is another place, held there or outside. */
async function heldPlace(root: string, name: string): Promise<Place | undefined> {
  const path = join(root, name);
  const [place, real] = await Promise.all([plainPlaceAt(path), placeAt(path)]);
  return real?.path === path ? place : undefined;
}

/** The directories between the root and a path, the outer ones first. */
function waysTo(root: string, path: string): string[] {
  const ways: string[] = [];
  for (let way = dirname(path); isInside(root, way) && relative(root, way) !== ''; way = dirname(way)) ways.unshift(way);
  return ways;
}
