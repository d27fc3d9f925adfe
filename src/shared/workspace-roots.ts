/**
 * The directories of a session's workspace: they bound what counts as inside it, for permissions, policies and searches.
 */

/** Canonical, the working directory first, each once. */
export function workspaceRoots({
  cwd,
  additionalDirectories = [],
}: {
  readonly cwd: string;
  readonly additionalDirectories?: readonly string[];
}): readonly string[] {
  return [...new Set([cwd, ...additionalDirectories])];
}
