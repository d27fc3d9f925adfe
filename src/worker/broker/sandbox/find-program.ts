/** A program of the system, found by name. Never through a relative path: that would be one of whoever owns the working directory. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Absolute path; looks in the absolute directories of `searchPath`, then in the system's own. */
export function findSystemProgram(name: string, searchPath: string | undefined): string | undefined {
  const directories = [...(searchPath ?? '').split(delimiter).filter(isAbsolute), '/usr/bin', '/bin'];
  return directories.map((directory) => join(directory, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not for us: the next directory.
    return false;
  }
}
