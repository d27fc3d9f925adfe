/**
 * A program of the system, found by name. Never by PATH: that may lead through a directory of the workspace (`node_modules/.bin`
 * is there whenever this program was started by a package script), and what is found here holds the sandbox together.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';

/** Where systems put what only their owner installs; the last two are those of NixOS and of Nix elsewhere. */
const systemDirectories = [
  '/usr/bin',
  '/bin',
  '/usr/local/bin',
  '/usr/sbin',
  '/sbin',
  '/run/current-system/sw/bin',
  '/nix/var/nix/profiles/default/bin',
];

/** Absolute path; `undefined` where the system has none. */
export function findSystemProgram(name: string, directories: readonly string[] = systemDirectories): string | undefined {
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
