/**
 * Looks at one entry of the file system without following a link. For what is asked hundreds of times before each command: the promises of
 * `node:fs/promises` cost several times as much.
 */
import { lstat, type Stats } from 'node:fs';

/** `undefined` where nothing is, or where nobody may look. Never rejects. */
export function quickLook(path: string): Promise<Stats | undefined> {
  return new Promise((resolve) => {
    lstat(path, (error, entry) => resolve(error === null ? entry : undefined));
  });
}
