/**
 * The check that every working directory passes before a session is made or loaded.
 */
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { ServerError } from '../../shared/errors.ts';

/**
 * The canonical path of a directory that this process can enter.
 *
 * @throws ServerError CWD_INVALID for a relative or missing path, a file, a directory without search permission
 */
export async function canonicalDirectory(path: string): Promise<string> {
  if (!isAbsolute(path) || path.includes('\0')) throw invalid('cwd must be an absolute path.');
  try {
    const canonical = await realpath(path);
    if (!(await stat(canonical)).isDirectory()) throw invalid('cwd must be a directory, and it is not one.');
    await access(canonical, constants.X_OK);
    return canonical;
  } catch (error) {
    if (error instanceof ServerError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw invalid(code === 'ENOENT' ? 'cwd does not exist.' : `cwd cannot be entered (${code}).`);
  }
}

function invalid(details: string): ServerError {
  return new ServerError('CWD_INVALID', details, { data: { field: 'cwd' } });
}
