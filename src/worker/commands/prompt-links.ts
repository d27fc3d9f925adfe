/**
 * Links of a prompt to files of the workspace, with the path that the tools take. A name is all that this gives: whether the file may
 * be read is asked when it is read.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PromptBlock, PromptLink } from '../../shared/events.ts';
import { isInside, isInsideAny } from '../../shared/path-inside.ts';
import { workspaceRoots } from '../../shared/workspace-roots.ts';

/** Its directories are canonical, but for the one that the client gave. */
type Workspace = Parameters<typeof workspaceRoots>[0] & { readonly givenCwd?: string };

/** Looks at names alone: a link to a place that does not answer must not hold up the thread. */
export function withPaths(content: readonly PromptBlock[], workspace: Workspace): readonly PromptBlock[] {
  return content.map((block) => {
    if (block.type !== 'resource_link' || !block.uri.startsWith('file:')) return block;
    return { ...block, ...placeOf(block.uri, workspace) };
  });
}

function placeOf(uri: string, workspace: Workspace): Pick<PromptLink, 'path' | 'lines'> {
  const path = localPath(uri);
  const named = path === undefined ? undefined : nameInside(path, workspace);
  if (named === undefined) return {};
  const lines = linesOf(uri);
  return { path: named, ...(lines === undefined ? {} : { lines }) };
}

/** Relative to the working directory, else absolute; `undefined` for what lies outside of the workspace. */
function nameInside(path: string, { givenCwd, ...workspace }: Workspace): string | undefined {
  const roots = workspaceRoots(workspace);
  // An empty way is the working directory itself.
  for (const cwd of [workspace.cwd, givenCwd]) if (cwd !== undefined && isInside(cwd, path)) return relative(cwd, path) || '.';
  return isInsideAny(roots, path) ? path : undefined;
}

function localPath(uri: string): string | undefined {
  try {
    const url = new URL(uri);
    url.hash = '';
    url.search = '';
    return fileURLToPath(url);
  } catch {
    // No file of this machine: the link stays what it was.
    return undefined;
  }
}

/** Editors mark a selection as `#L12`, `#L12-20` or `#L12:20`. */
function linesOf(uri: string): string | undefined {
  const [, first, last] = /#L(\d{1,9})(?:[:-]L?(\d{1,9}))?$/.exec(uri) ?? [];
  if (first === undefined) return undefined;
  return last === undefined ? first : `${first}-${last}`;
}
