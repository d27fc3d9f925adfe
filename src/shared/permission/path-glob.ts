/**
 * One glob of a policy, over canonical paths. A relative one is seen from the session's working directory, one that begins
 * with `~/` from the user's home. Pure.
 *
 * A directory stands for all that lies in it, as a search reads it: to allow one, the glob must cover it whole; to be
 * touched by a restricting glob, it is enough that something in it may match.
 */
import { resolve } from 'node:path';
import { globPattern } from '../glob-pattern.ts';
import { isInside } from '../path-inside.ts';

/** Both canonical; `home` is `undefined` when it is not known. */
export interface Places {
  readonly cwd: string;
  readonly home: string | undefined;
}

export interface PathGlob {
  /** This very path. */
  matches(path: string): boolean;
  /** Everything that may lie in this directory, at any depth. */
  covers(directory: string): boolean;
  /** Something in this directory may match; in doubt yes. */
  touches(directory: string): boolean;
  /** The one path that a glob without wildcards names. */
  readonly exact: string | undefined;
  /** False when the place it is seen from is not known: then it says nothing, and a rule that denies counts as met. */
  readonly isPlaced: boolean;
}

const wildcard = /[*?[\]{}\\]/;
const unplaced: PathGlob = { matches: () => false, covers: () => false, touches: () => true, exact: undefined, isPlaced: false };

/** @param glob as the policy's check let it through; one that is not valid is taken as not placed */
export function pathGlob(glob: string, places: Places): PathGlob {
  const isHome = glob.startsWith('~/');
  const isAbsolute = glob.startsWith('/');
  const base = isAbsolute ? '/' : isHome ? places.home : places.cwd;
  const own = isAbsolute ? glob.slice(1) : isHome ? glob.slice(2) : glob;
  if (base === undefined) return unplaced;
  if (own === '.') return directoryItself(base);
  // Seen from a fixed place every name counts; a bare relative name is meant at any depth.
  const isAnchored = isAbsolute || isHome || own.includes('/');
  const pattern = globPattern(isAbsolute || isHome ? `./${own}` : own);
  if (pattern === undefined) return unplaced;
  const matches = (path: string): boolean => isInside(base, path) && pattern.test(below(base, path));
  const isDeep = own === '**' || own.endsWith('/**');
  const fixed = isAnchored ? resolve(base, fixedNames(own)) : base;
  return {
    matches,
    // Its last part takes any names, so if it takes one name in there it takes all.
    covers: (directory) => isDeep && matches(resolve(directory, 'x')),
    touches: (directory) => isInside(directory, fixed) || isInside(fixed, directory),
    exact: wildcard.test(own) ? undefined : resolve(base, own),
    isPlaced: true,
  };
}

function directoryItself(base: string): PathGlob {
  return { matches: (path) => path === base, covers: () => false, touches: (path) => isInside(path, base), exact: base, isPlaced: true };
}

function below(base: string, path: string): string {
  if (path === base) return '';
  return path.slice(base.endsWith('/') ? base.length : base.length + 1);
}

/** The names before the first one with a wildcard. */
function fixedNames(glob: string): string {
  const names = glob.split('/');
  const first = names.findIndex((name) => wildcard.test(name));
  return (first < 0 ? names : names.slice(0, first)).join('/');
}
