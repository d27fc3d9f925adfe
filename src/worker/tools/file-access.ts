/**
 * Where a path of a tool call really leads, and the promise that a call touches what was decided on.
 *
 * `access()` of a file tool answers canonical paths, so the permission policy sees a symbolic link's target. The decision
 * is kept by the identity of the call's arguments; execution resolves again and is refused when the answer differs.
 */
import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isInside } from '../../shared/path-inside.ts';
import { FsFault, isMissing } from './fs-fault.ts';

const maxLinks = 40;

/** Kernel views: never files of a person, and some of them hold the environment of this very process. */
const kernelTrees = ['/proc', '/sys'];

/** Canonical absolute path for what exists; for the rest, its deepest existing ancestor made canonical plus the names below it. */
function canonicalise(absolute: string, links = 0): string {
  try {
    return realpathSync.native(absolute);
  } catch (error) {
    if (!isMissing(error)) {
      throw error;
    }
  }
  const parent = dirname(absolute);
  if (parent === absolute) {
    return absolute;
  }
  const here = join(canonicalise(parent, links), basename(absolute));
  const target = linkTarget(here);
  if (target === undefined) {
    return here;
  }
  // A link whose target does not exist yet: writing through it would create the target, so the target is what counts.
  if (links >= maxLinks) {
    throw new FsFault('FS_INVALID_PATH', `${absolute} leads through too many symbolic links.`);
  }
  return canonicalise(resolve(dirname(here), target), links + 1);
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // It is not there, which is the usual case for a file about to be created; execution reports anything else.
    return undefined;
  }
}

/**
 * The canonical absolute path that `filePath` (absolute, or relative to `cwd`) leads to now.
 *
 * @throws FsFault FS_INVALID_PATH for NUL bytes, link loops and kernel trees; errors of `realpath` as they are
 */
export function resolvePath(filePath: string, cwd: string): string {
  if (filePath.includes('\0')) {
    throw new FsFault('FS_INVALID_PATH', 'The path holds a NUL byte. Give a plain path.');
  }
  const canonical = canonicalise(resolve(cwd, filePath));
  if (kernelTrees.some((root) => isInside(root, canonical))) {
    throw new FsFault('FS_NOT_REGULAR_FILE', `${filePath} leads into a kernel file system, which file tools do not open.`);
  }
  return canonical;
}

/** Decided path per call; `undefined` when it could not be resolved, or when two decisions disagreed. */
const decisions = new WeakMap<object, { readonly path: string | undefined }>();

/**
 * For `access()`: the canonical path of the call, remembered for {@link pathForExecution}. Never throws: a path that
 * cannot be resolved is answered as written, and its execution is refused whatever the policy says.
 */
export function decidedPath(args: object, filePath: string, cwd: string): string {
  let path: string | undefined;
  try {
    path = resolvePath(filePath, cwd);
  } catch {
    // Execution resolves again and tells the model why.
    path = undefined;
  }
  const earlier = decisions.get(args);
  const agreed = earlier === undefined || earlier.path === path;
  decisions.set(args, { path: agreed ? path : undefined });
  return path ?? resolve(cwd, filePath.replaceAll('\0', '\uFFFD'));
}

/**
 * For `execute()`: the canonical path, the same one that was decided on when `access()` ran for these arguments.
 *
 * @throws FsFault FS_PATH_CHANGED when the path leads elsewhere than at the decision; what {@link resolvePath} throws
 */
export function pathForExecution(args: object, filePath: string, cwd: string): string {
  const path = resolvePath(filePath, cwd);
  const decision = decisions.get(args);
  if (decision !== undefined && decision.path !== path) {
    throw pathChanged(filePath);
  }
  return path;
}

/** The refusal for a path that was swapped between the check and the use. */
export function pathChanged(shownPath: string): FsFault {
  return new FsFault(
    'FS_PATH_CHANGED',
    `${shownPath} leads to another place than when the call was checked (a link or a directory was swapped). Nothing was touched. Make the call again.`,
  );
}
