/** Finds a stored session by its id, or by the beginning of it. */
import { readdirSync } from 'node:fs';
import { ServerError } from '../../shared/errors.ts';
import { errorCode } from '../../shared/log/log-faults.ts';
import { isSessionId, sessionIdOfLog, sessionsDir } from '../../shared/log/session-paths.ts';
import { visibleLine } from '../run/view/visible-text.ts';

const mostNamed = 5;

/** @throws ServerError SESSION_NOT_FOUND when no session has it; INVALID_PARAMS when several do; INTERNAL when they cannot be listed */
export function findSession(stateDir: string, given: string): string {
  const prefix = given.toLowerCase();
  const found = /^[0-9a-f-]+$/.test(prefix) ? storedIds(stateDir).filter((id) => id.startsWith(prefix)) : [];
  const [only] = found;
  const word = visibleLine(given, 60);
  if (only === undefined)
    throw new ServerError('SESSION_NOT_FOUND', `There is no session ${word} in ${sessionsDir(stateDir)}; dsh-acp sessions list shows all.`);
  if (found.length === 1 || isSessionId(prefix)) return isSessionId(prefix) ? prefix : only;
  const named = found.slice(0, mostNamed).join(', ');
  const more = found.length > mostNamed ? ', …' : '';
  throw new ServerError('INVALID_PARAMS', `${found.length} sessions begin with ${word}: ${named}${more}. Give more of the id.`);
}

function storedIds(stateDir: string): string[] {
  let names: string[];
  try {
    names = readdirSync(sessionsDir(stateDir));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw new ServerError('INTERNAL', `The sessions cannot be listed (${errorCode(error)}).`, { cause: error });
  }
  return names
    .map(sessionIdOfLog)
    .filter((id) => id !== undefined)
    .sort();
}
