/**
 * The model server of the comparison as a process of its own. Prints `{"origin":"…"}` and ends on SIGTERM or when stdin ends. Then the bench
 * is over, or was killed: what still carries the mark in its first argument is ended, and the folder in its second one removed.
 */
import { rmSync } from 'node:fs';
import { killMarked } from '../process-tree.ts';
import { WireServer } from './wire-server.ts';

const [, , mark, scratch] = process.argv;
const server = await WireServer.start();
process.stdout.write(`${JSON.stringify({ origin: server.origin })}\n`);
const end = (): void => {
  if (mark !== undefined) killMarked(mark);
  if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  void server.close().finally(() => process.exit(0));
};
// A Ctrl-C at the terminal reaches this process, too, and the bench still needs it.
process.on('SIGINT', () => undefined);
process.once('SIGTERM', end);
process.stdin.once('end', end).resume();
