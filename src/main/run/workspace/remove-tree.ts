/** Removes a directory whatever modes its files have: a job may have taken the right to write from its own directories. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';

/** @throws the system's error when it cannot be removed */
export async function removeTree(path: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 3, retryDelay: 50 };
  try {
    await rm(path, options);
  } catch {
    // -P and -h are the default of -R: links are not followed.
    const child = spawn('chmod', ['-R', 'u+rwX', path], { stdio: 'ignore', detached: true });
    child.on('error', () => undefined);
    await once(child, 'close').catch(() => undefined);
    await rm(path, options);
  }
}
