/** Whether session logs can be kept, and whether they are private. Writes one small file where the directory exists. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Finding, fail, ok, warn } from './finding.ts';

const subject = 'state dir';
const advice = 'Choose another with --state-dir, or correct its owner and mode.';

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

async function checkParent(directory: string): Promise<Finding> {
  for (let parent = dirname(directory); ; parent = dirname(parent)) {
    try {
      await access(parent, constants.W_OK | constants.X_OK);
      return ok(subject, `${directory} (will be made)`);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || parent === dirname(parent))
        return fail(subject, `${directory} cannot be made in ${parent} (${codeOf(error)})`, advice);
    }
  }
}

export async function checkStateDir(directory: string): Promise<Finding> {
  try {
    const info = await stat(directory);
    if (!info.isDirectory()) return fail(subject, `${directory} is not a directory`, advice);
    const probe = join(directory, `.doctor-${randomUUID()}`);
    await writeFile(probe, '', { flag: 'wx', mode: 0o600 });
    await unlink(probe);
    if (process.platform !== 'win32' && (info.mode & 0o077) !== 0) {
      const mode = (info.mode & 0o777).toString(8).padStart(4, '0');
      return warn(subject, `${directory} is open to other users (mode ${mode})`, `Run: chmod 700 ${directory}`);
    }
    return ok(subject, directory);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return await checkParent(directory);
    return fail(subject, `${directory} cannot be written (${codeOf(error)})`, advice);
  }
}
