/**
 * Which shell runs commands: bash where there is one, else sh. Looked up once per thread.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, sep } from 'node:path';

/**
 * Absolute path of bash on the search path, else plain `sh`. Not from what a package manager puts before it: those programs
 * are the workspace's when this one was started by a script of it.
 */
export function findShell(searchPath: string | undefined): string {
  for (const directory of [...(searchPath ?? '').split(delimiter), '/bin', '/usr/bin']) {
    const candidate = join(directory, 'bash');
    if (isAbsolute(directory) && !isOfPackages(directory) && isExecutable(candidate)) return candidate;
  }
  return 'sh';
}

function isOfPackages(directory: string): boolean {
  return directory.split(sep).includes('node_modules');
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
