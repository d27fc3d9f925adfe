/**
 * Sockets that are files, wherever they are: who reaches one gives orders to the program behind it. The kernel lists those of this network
 * namespace, so none has to be known by name.
 */
import { readFile } from 'node:fs/promises';
import { isAbsolute } from 'node:path';

/** More are not looked at: a machine has some hundreds, most of them in `/run`. */
const mostSockets = 4_096;
/** Before the path: address, references, protocol, flags, type, state, inode. */
const line = /^(?:\S+\s+){7}(\/.*)$/;

/** Absolute paths as they were bound; they may be gone. Empty where the system does not tell. Never rejects. */
export async function boundSockets(table = '/proc/net/unix'): Promise<string[]> {
  const text = await readFile(table, 'latin1').catch(() => '');
  const paths = text
    .split('\n')
    .slice(1, mostSockets + 1)
    .flatMap((row) => line.exec(row)?.[1] ?? []);
  return [...new Set(paths.map((path) => Buffer.from(path, 'latin1').toString('utf8')))].filter((path) => isAbsolute(path));
}
