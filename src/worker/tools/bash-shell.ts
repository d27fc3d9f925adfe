/**
 * Which shell runs commands: bash where there is one, else sh. Looked up once per thread.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Absolute path of bash on the search path, else plain `sh`. */
export function findShell(searchPath: string | undefined): string {
  for (const directory of [...(searchPath ?? '').split(delimiter), '/bin', '/usr/bin']) {
    const candidate = join(directory, 'bash');
    if (isAbsolute(directory) && isExecutable(candidate)) return candidate;
  }
  return 'sh';
}

let found: string | undefined;

export function commandShell(): string {
  found ??= findShell(process.env.PATH);
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not for us: the next directory.
    return false;
  }
}
