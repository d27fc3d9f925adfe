/** `dsh-acp sessions`: lists, shows, exports and deletes stored sessions, also while servers run. */
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ReadStream, WriteStream } from 'node:tty';
import { coloured, plain } from '../transcript/paint.ts';
import { deleteSessions } from './sessions-delete.ts';
import { exportSession, exportToFile } from './sessions-export.ts';
import { findSession } from './sessions-find.ts';
import { readLimit, type SessionsCall } from './sessions-flags.ts';
import { sessionsJson, sessionsTable } from './sessions-list.ts';
import { CommandOutput } from './sessions-output.ts';
import { showJson, showPage, showText } from './sessions-show.ts';

export interface SessionsPlace {
  readonly stateDir: string;
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  readonly stderr: WriteStream;
}

/**
 * @returns the exit code
 * @throws ServerError CONFIG_INVALID for a wrong value; SESSION_NOT_FOUND or INVALID_PARAMS for an id that names no session, or several;
 *   INTERNAL when the disk refuses
 */
export async function runSessions({ act, words, given }: SessionsCall, place: SessionsPlace): Promise<number> {
  const { stateDir, stdout } = place;
  const output = new CommandOutput(stdout);
  const paint = stdout.isTTY && (place.env['NO_COLOR'] ?? '') === '' ? coloured : plain;
  switch (act) {
    case 'list': {
      const cwd = given.get('cwd');
      const directory = cwd === undefined ? undefined : canonical(resolve(place.cwd, cwd));
      const plan = { stateDir, cwd: directory, limit: readLimit(given.get('limit')), now: Date.now(), home: place.home };
      await output.write(given.has('json') ? await sessionsJson(plan) : await sessionsTable(plan, paint));
      return 0;
    }
    case 'show': {
      const id = findSession(stateDir, words[0] ?? '');
      if (given.has('json')) await output.write(await showJson({ stateDir, id }));
      else if (given.has('html')) await showPage({ stateDir, id }, output, pageFile(id, words[1], place));
      else await showText({ stateDir, id }, output, paint);
      return 0;
    }
    case 'export': {
      const id = findSession(stateDir, words[0] ?? '');
      const what = given.has('trajectory') ? 'trajectory' : 'log';
      const file = given.get('out');
      if (file === undefined) await exportSession({ stateDir, id }, output, what);
      else await exportToFile({ stateDir, id }, resolve(place.cwd, file), what);
      return 0;
    }
    case 'delete':
    default: {
      // All of them first: a slip of the pen must not leave half of them deleted.
      const ids = [...new Set(words.map((word) => findSession(stateDir, word)))];
      const terminal = place.stdin.isTTY && place.stderr.isTTY ? { input: place.stdin, output: place.stderr } : undefined;
      const print = (text: string): void => void stdout.write(text);
      const say = (text: string): void => void place.stderr.write(text);
      return await deleteSessions({ stateDir, ids, yes: given.has('yes'), terminal, print, say });
    }
  }
}

/** A page on a terminal helps nobody. */
function pageFile(id: string, file: string | undefined, { cwd, stdout }: SessionsPlace): string | undefined {
  if (file !== undefined) return resolve(cwd, file);
  return stdout.isTTY ? resolve(cwd, `session-${id.slice(0, 8)}.html`) : undefined;
}

/** The directory may be gone: its name is enough then. */
function canonical(directory: string): string {
  try {
    return realpathSync.native(directory);
  } catch {
    return directory;
  }
}
