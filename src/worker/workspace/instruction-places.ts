/**
 * Where instruction files may lie, and which of them are there. Looks at names alone and opens nothing.
 *
 * Directories from the working directory up to the root of its repository count, outermost first; without a repository,
 * up to below the user's home; and where there is neither, the working directory alone: what lies above it belongs to
 * nobody's project. Then the further directories of the workspace, and those below in which the session has read something; and
 * before all of them the person's own file.
 */
import { lstatSync, realpathSync, type Stats } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { isInside, isInsideAny } from '../../shared/path-inside.ts';

const fileNames = ['AGENTS.md', 'CLAUDE.md'] as const;
const mostLevels = 24;
/** Directories that were entered; each costs two looks at the disk. */
const mostBelow = 64;
/** Together; the workspace may have many directories. */
const mostFiles = 24;

export interface InstructionPlaces {
  /** Canonical. */
  readonly cwd: string;
  /** Canonical; beside `cwd`. */
  readonly additionalDirectories: readonly string[];
  /** Canonical. */
  readonly home: string | undefined;
  /** Of the person who runs this server; for all projects. */
  readonly userFile: string | undefined;
}

export interface FoundFile {
  /** As it is named in its directory. */
  readonly path: string;
  /** Where it leads; the same for anything but a link. */
  readonly target: string;
  readonly isUsers: boolean;
  /** In a directory that matters only since something was read there: it takes the room that others leave. */
  readonly isBelow: boolean;
  /** The nearer to the work, the greater. */
  readonly nearness: number;
  /** Changes when the file does. */
  readonly signature: string;
}

/**
 * Everything that may be read, in the order in which it is told: what is nearer to the work comes later.
 *
 * @param entered directories in which the session has read; canonical, of the workspace or not
 */
export function findInstructions(places: InstructionPlaces, entered: readonly string[] = []): FoundFile[] {
  const upward = directoriesUpward(places.cwd, places.home);
  const roots = [upward[0] ?? places.cwd, ...places.additionalDirectories];
  const owners = trustedOwners(places.cwd);
  const below = directoriesBelow([places.cwd, ...places.additionalDirectories], entered);
  const found: FoundFile[] = [];
  const seen = new Set<string>();
  const take = (path: string, isUsers: boolean, allowed: (target: string, stats: Stats) => boolean): void => {
    if (found.length >= mostFiles) return;
    const file = lookAt(path);
    if (file === undefined || !allowed(file.target, file.stats)) return;
    // Two names of one file, or one name twice where case does not count.
    const identity = `${file.stats.dev}:${file.stats.ino}`;
    if (seen.has(identity)) return;
    seen.add(identity);
    const { size, mtimeMs } = file.stats;
    const isBelow = below.has(dirname(path));
    found.push({
      path,
      target: file.target,
      isUsers,
      isBelow,
      nearness: found.length,
      signature: `${path}\0${file.target}\0${identity}:${size}:${mtimeMs}`,
    });
  };
  if (places.userFile !== undefined) take(places.userFile, true, () => true);
  for (const directory of [...upward, ...places.additionalDirectories, ...below]) {
    const isAbove = directory !== places.cwd && upward.includes(directory);
    for (const name of fileNames) {
      take(join(directory, name), false, (target, stats) => {
        // A link may lead to the same kind of file of this workspace, and to nothing else: not out of it, and to no secret.
        const leadsRight = isInsideAny(roots, target) && (fileNames as readonly string[]).includes(basename(target));
        // Above the workspace others may write, as in a shared directory for scratch files.
        return leadsRight && (!isAbove || owners === undefined || owners.includes(stats.uid));
      });
    }
  }
  return found;
}

/** Outermost first, `cwd` last. */
function directoriesUpward(cwd: string, home: string | undefined): string[] {
  const passed: string[] = [];
  for (let directory = cwd; passed.length < mostLevels; directory = dirname(directory)) {
    if (directory === home && directory !== cwd) return passed;
    passed.unshift(directory);
    if (statsOf(join(directory, '.git')) !== undefined) return passed;
    if (dirname(directory) === directory) break;
  }
  return [cwd];
}

/** Other people's code, and what git keeps: what is written there is not about this project. */
const foreign = new Set(['node_modules', '.git']);

/** All directories on the way from a root of the workspace down to those that were entered, outer ones first. */
function directoriesBelow(roots: readonly string[], entered: readonly string[]): ReadonlySet<string> {
  const below = new Set<string>();
  for (const directory of entered) {
    const root = roots.find((one) => isInside(one, directory));
    if (root === undefined) continue;
    const names = relative(root, directory).split(sep);
    if (names.length > mostLevels || names.some((name) => foreign.has(name))) continue;
    names.reduce((outer, name) => {
      const inner = join(outer, name);
      if (!roots.includes(inner) && below.size < mostBelow) below.add(inner);
      return inner;
    }, root);
  }
  return below;
}

/** The user of this process, the owner of the working directory, and the one who may write everywhere anyway. */
function trustedOwners(cwd: string): readonly number[] | undefined {
  const own = process.getuid?.();
  if (own === undefined) return undefined;
  const owner = statsOf(cwd)?.uid;
  return owner === undefined ? [own, 0] : [own, 0, owner];
}

function lookAt(path: string): { readonly target: string; readonly stats: Stats } | undefined {
  const named = statsOf(path);
  if (named?.isFile() === true) return { target: path, stats: named };
  if (named?.isSymbolicLink() !== true) return undefined;
  try {
    const target = realpathSync.native(path);
    const stats = statsOf(target);
    return stats?.isFile() === true ? { target, stats } : undefined;
  } catch {
    // A link to nothing, or a loop of them.
    return undefined;
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A directory that may not be searched holds nothing for us.
    return undefined;
  }
}
