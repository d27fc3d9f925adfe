/** Races for locks: reads `{start, locks}` from stdin, tries lock n at `start + n * 10` ms, prints what came of each. */
import { createInterface } from 'node:readline';
import { SessionLock } from '../../../../../src/shared/log/session-lock.ts';

const serverNonce = process.argv[2] ?? '';
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
process.stdout.write('ready\n');
const { start, locks } = JSON.parse((await input.next()).value ?? '') as { start: number; locks: string[] };
const won: SessionLock[] = [];
const outcomes: string[] = [];
for (const [index, lockPath] of locks.entries()) {
  const at = start + index * 10;
  while (Date.now() < at) {
    // Spins, so that all start in the same millisecond.
  }
  try {
    won.push(await SessionLock.acquire({ lockPath, serverNonce, threadId: 0 }));
    outcomes.push('won');
  } catch (error) {
    outcomes.push(error instanceof Error && 'code' in error ? String(error.code) : String(error));
  }
}
process.stdout.write(`${JSON.stringify(outcomes)}\n`);
// Holds what it won until all have reported.
await input.next();
process.stdout.write(`${JSON.stringify(won.map((lock) => lock.stillOwner()))}\n`);
process.exit(0);
