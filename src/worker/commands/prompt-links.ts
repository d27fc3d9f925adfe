/**
 * Links of a prompt to files of the workspace, with the path that the tools take. A name is all that this gives: whether the file may
 * be read is asked when it is read.
 */
import { realpathSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PromptBlock, PromptLink } from '../../shared/events.ts';
import { isInside, isInsideAny } from '../../shared/path-inside.ts';
import { workspaceRoots } from '../../shared/workspace-roots.ts';

type Workspace = Parameters<typeof workspaceRoots>[0];

/** Of one prompt; more links are kept as they came. */
const mostLinks = 100;

/** The directories of `workspace` are canonical. */
export function withPaths(content: readonly PromptBlock[], workspace: Workspace): readonly PromptBlock[] {
  const roots = workspaceRoots(workspace);
  let links = 0;
  return content.map((block) => {
    if (block.type !== 'resource_link' || !block.uri.startsWith('file:')) return block;
    links += 1;
    return links > mostLinks ? block : { ...block, ...placeOf(block.uri, roots) };
  });
}

function placeOf(uri: string, roots: readonly string[]): Pick<PromptLink, 'path' | 'lines'> {
  const path = insidePath(uri, roots);
  if (path === undefined) return {};
  const cwd = roots[0] ?? '/';
  const lines = linesOf(uri);
  // An empty way is the working directory itself.
  const named = isInside(cwd, path) ? relative(cwd, path) || '.' : path;
  return { path: named, ...(lines === undefined ? {} : { lines }) };
}

function insidePath(uri: string, roots: readonly string[]): string | undefined {
  try {
    const url = new URL(uri);
    url.hash = '';
    url.search = '';
    const path = fileURLToPath(url);
    if (isInsideAny(roots, path)) return path;
    // The client may name the workspace by another way to it.
    const canonical = realpathSync.native(path);
    return isInsideAny(roots, canonical) ? canonical : undefined;
  } catch {
    // No file of this machine, or none that is there: the link stays what it was.
    return undefined;
  }
}

/** Editors mark a selection as `#L12`, `#L12-20` or `#L12:20`. */
function linesOf(uri: string): string | undefined {
  const [, first, last] = /#L(\d{1,9})(?:[:-]L?(\d{1,9}))?$/.exec(uri) ?? [];
  if (first === undefined) return undefined;
  return last === undefined ? first : `${first}-${last}`;
}
