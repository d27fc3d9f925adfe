/** The first line of a new session's log. */
import { v7 as uuidv7 } from 'uuid';
import type { ServerConfig } from '../../shared/config.ts';
import { logVersion, type SessionHeader } from '../../shared/events.ts';
import type { SessionOptions } from '../../shared/session-options.ts';

/** With an id of its own. @param cwd canonical */
export function newHeader(cwd: string, options: SessionOptions, { agentName, agentVersion }: ServerConfig): SessionHeader {
  // The environment is not kept: it may hold secrets.
  const { env: _env, ...stored } = options;
  return {
    type: 'session',
    version: logVersion,
    id: uuidv7(),
    createdAt: new Date().toISOString(),
    cwd,
    agent: { name: agentName, version: agentVersion },
    ...(Object.keys(stored).length === 0 ? {} : { options: stored }),
  };
}
