/** The first line of a new session's log. */
import { v7 as uuidv7 } from 'uuid';
import type { ServerConfig } from '../../shared/config.ts';
import { logVersion, type SessionHeader } from '../../shared/events.ts';
import type { SessionOptions } from '../../shared/session-options.ts';

/** @param cwd canonical @param id its own, where none is given */
export function newHeader(cwd: string, options: SessionOptions, { agentName, agentVersion }: ServerConfig, id = uuidv7()): SessionHeader {
  // The environment is not kept: it may hold secrets.
  const { env: _env, ...stored } = options;
  return {
    type: 'session',
    version: logVersion,
    id,
    createdAt: new Date().toISOString(),
    cwd,
    agent: { name: agentName, version: agentVersion },
    ...(Object.keys(stored).length === 0 ? {} : { options: stored }),
  };
}
