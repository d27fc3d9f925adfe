/**
 * Frees the lock that a session thread of this server left behind when it died.
 *
 * Not for a session that may be on a thread: only the thread's own lock object knows whether it still is the owner. Without
 * this a session whose thread was lost would stay locked against other servers for as long as this one lives.
 */
import { readFileSync, unlinkSync } from 'node:fs';

/** Removes the lock file if it names this server. Never throws: the next one to open the session judges a lock left behind. */
export function releaseLostLock(lockPath: string, serverNonce: string): void {
  try {
    const owner = JSON.parse(readFileSync(lockPath, 'utf8')) as { readonly serverNonce?: unknown };
    // Nobody replaces a lock whose process lives, so it cannot change hands before the next line.
    if (owner.serverNonce === serverNonce) unlinkSync(lockPath);
  } catch {
    // Released already, or the directory is gone.
  }
}
