/**
 * Waits for a file that a command under test makes, by the file system's own events.
 */
import { existsSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Fulfils once `path` exists; its directory must exist already. */
export async function fileAppears(path: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const watcher = watch(dirname(path), (_event, name) => {
      if (name === basename(path)) done();
    });
    const done = (): void => {
      watcher.close();
      resolve();
    };
    // Watching first, looking second: nothing that appears in between is missed.
    if (existsSync(path)) done();
  });
}
