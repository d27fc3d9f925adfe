/** From what a tool says it would touch to what that really is: links followed, and directories known where it matters. */
import { stat } from 'node:fs/promises';
import type { ToolAccess } from '../tools/tool.ts';
import { canonicalPath } from './canonical-path.ts';
import type { ResolvedAccess, ResolvedPath } from '../../shared/permission/mode-policy.ts';

/** `forRules` looks further: a rule also asks whether a path is a directory. */
export async function resolveAccess(access: ToolAccess, forRules: boolean): Promise<ResolvedAccess> {
  switch (access.kind) {
    case 'read':
    case 'write':
      return { kind: access.kind, paths: await Promise.all(access.paths.map((given) => resolvePath(given, forRules))) };
    case 'execute':
      return { ...access, canonicalCwd: await canonicalPath(access.cwd) };
    case 'none':
    case 'delegate':
    case 'mcp':
    default:
      return access;
  }
}

async function resolvePath(given: string, forRules: boolean): Promise<ResolvedPath> {
  const canonical = await canonicalPath(given);
  if (!forRules || canonical === undefined) return { given, canonical };
  return { given, canonical, isDirectory: await isDirectory(canonical) };
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // Not there yet: what is made there is a file.
    return false;
  }
}
