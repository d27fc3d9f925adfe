/**
 * Where a child works: its provider's directory, else that of the session that delegates. Never the server's own, since
 * one server works in many directories.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';

export type WorkingDirectory = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly message: string };

/** Looks before anything is spawned. `fromProvider` comes first; an empty path counts as none. */
export async function resolveWorkingDirectory(fromProvider: string | undefined, fromSession: string): Promise<WorkingDirectory> {
  const path = fromProvider ?? fromSession;
  const whose = fromProvider === undefined ? "the session's cwd" : "the provider's cwd";
  if (path === '') return { ok: false, message: 'no working directory for the child: neither its provider nor the session names one' };
  if (!isAbsolute(path)) return { ok: false, message: `${whose} must be an absolute path: ${path}` };
  if (await isEnterable(path)) return { ok: true, path };
  return { ok: false, message: `${whose} is not an accessible directory: ${path}` };
}

async function isEnterable(path: string): Promise<boolean> {
  try {
    // To enter is what a process needs; to list it is not.
    await access(path, constants.X_OK);
    return (await stat(path)).isDirectory();
  } catch {
    // Not there, or not to be entered by this user: the message names the path.
    return false;
  }
}
