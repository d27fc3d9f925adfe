/**
 * The promise that a command runs in the directory that was decided on: a link on the way to it may be turned while somebody is
 * asked. The same for directories as `file-access.ts` is for files.
 */
import { realpathSync } from 'node:fs';

/** By the identity of a call's arguments. `undefined` for a directory that cannot be had: nothing runs there anyway. */
const decisions = new WeakMap<object, string | undefined>();

/** For `access()`: remembers where the directory really is. A second look counts for nothing. */
export function decideDirectory(args: object, directory: string): void {
  if (!decisions.has(args)) decisions.set(args, placeOf(directory));
}

/** For `execute()`: whether it still leads there. True where nothing was decided. */
export function isDecidedDirectory(args: object, directory: string): boolean {
  return !decisions.has(args) || decisions.get(args) === placeOf(directory);
}

function placeOf(directory: string): string | undefined {
  try {
    return realpathSync.native(directory);
  } catch {
    // Missing, or not to be searched: starting the command says so.
    return undefined;
  }
}
