/**
 * The sessions that the client has open, with what is needed to open them again in a new server process.
 */
import { extensionName } from '../acp/meta/extension.ts';
import type { OpenRequest } from './open-requests.ts';
import { type LooseFrame, member } from './frames.ts';

export interface KnownSession {
  readonly id: string;
  /** Params of a `session/resume`. May hold secrets: kept in memory only. */
  readonly resume: object;
  /** `lost` with the process it was open in, until something asks for it. */
  state: 'open' | 'lost' | 'opening';
  /** Had a prompt in the process that is running, so something of it may run on without that. */
  active: boolean;
  /** Lines that wait for it to be open again, in order. */
  readonly held: string[];
}

const opening = new Set(['session/new', 'session/load', 'session/resume', 'session/fork']);
const closing = new Set(['session/close', 'session/delete']);

export class KnownSessions {
  readonly #byId = new Map<string, KnownSession>();

  get(id: string | undefined): KnownSession | undefined {
    return id === undefined ? undefined : this.#byId.get(id);
  }

  /** Learns from an answered request which sessions are open now. */
  learn(request: OpenRequest, response: LooseFrame): void {
    if (response.error !== undefined) return;
    if (closing.has(request.method) && request.sessionId !== undefined) this.#byId.delete(request.sessionId);
    if (!opening.has(request.method)) return;
    // One that is only looked at holds nothing that could be lost; it is loaded again by whoever looks.
    if (member(member(member(request.params, '_meta'), extensionName), 'readOnly') === true) return;
    const given = member(response.result, 'sessionId');
    const id = typeof given === 'string' ? given : request.sessionId;
    if (id !== undefined) this.#byId.set(id, { id, resume: resumeParams(id, request.params), state: 'open', active: false, held: [] });
  }

  forget(id: string): void {
    this.#byId.delete(id);
  }

  /** The process is gone; gives those that were at work. */
  loseAll(): KnownSession[] {
    const active: KnownSession[] = [];
    for (const session of this.#byId.values()) {
      session.state = 'lost';
      session.held.length = 0;
      if (session.active) active.push(session);
      session.active = false;
    }
    return active;
  }
}

/** All but what the log knows: its options, its mode. */
function resumeParams(sessionId: string, params: unknown): object {
  const env = member(member(member(params, '_meta'), extensionName), 'env');
  const additionalDirectories = member(params, 'additionalDirectories');
  return {
    sessionId,
    cwd: member(params, 'cwd'),
    mcpServers: member(params, 'mcpServers') ?? [],
    ...(additionalDirectories === undefined ? {} : { additionalDirectories }),
    ...(env === undefined ? {} : { _meta: { [extensionName]: { env } } }),
  };
}
