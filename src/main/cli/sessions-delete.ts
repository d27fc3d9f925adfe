/** `dsh-acp sessions delete`: sessions with all that belongs to them, after a question. One that a server works on is left alone. */
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { ServerError } from '../../shared/errors.ts';
import { deleteSession } from '../../shared/log/delete-session.ts';
import { configError } from '../config/config-error.ts';
import { endOrphans } from '../threads/end-orphans.ts';

export interface DeletePlan {
  readonly stateDir: string;
  readonly ids: readonly string[];
  readonly yes: boolean;
  /** A terminal; `undefined` when nobody can be asked. */
  readonly terminal: { readonly input: Readable; readonly output: Writable } | undefined;
  readonly print: (text: string) => void;
  readonly say: (text: string) => void;
}

/**
 * @returns the exit code: 1 when a session was left
 * @throws ServerError CONFIG_INVALID when nobody said yes, and nobody can be asked
 */
export async function deleteSessions({ stateDir, ids, yes, terminal, print, say }: DeletePlan): Promise<number> {
  if (!yes) {
    if (terminal === undefined) throw configError({ key: '--yes', expected: 'it, as nobody can be asked here', where: 'command line' });
    if (!(await isConfirmed(ids, terminal))) {
      print('Nothing was deleted.\n');
      return 1;
    }
  }
  const serverNonce = randomUUID();
  let left = 0;
  for (const id of ids) {
    try {
      await deleteSession({ stateDir, id, serverNonce, onOrphaned: (orphaned) => endOrphans(orphaned) });
      print(`Deleted ${id}\n`);
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      left += 1;
      say(`dsh-acp: ${id}: ${error.code}: ${error.message}\n`);
    }
  }
  return left === 0 ? 0 : 1;
}

async function isConfirmed(ids: readonly string[], terminal: NonNullable<DeletePlan['terminal']>): Promise<boolean> {
  const lines = createInterface({ input: terminal.input, output: terminal.output });
  // Whoever closes the terminal has not said yes.
  const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    const what = ids.length === 1 ? `session ${ids[0]}` : `these ${ids.length} sessions:\n${ids.map((id) => `  ${id}\n`).join('')}`;
    const answer = await Promise.race([lines.question(`Delete ${what} for good? Type yes: `), closed]);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
