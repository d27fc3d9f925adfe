/**
 * The sessions that the client has open, with what is needed to open them again in a new server process.
 */
import type { OpenRequest } from './open-requests.ts';
import { extensionName } from '../acp/meta/extension.ts';
import { type LooseFrame, member } from './frames.ts';

export interface Held {
  readonly line: string;
  /** Absent for a notification. */
  readonly request?: OpenRequest;
}

export interface KnownSession {
  readonly id: string;
  /** Params of a `session/resume`, as JSON. May hold secrets: kept in memory only. */
  readonly resume: string;
  /** `lost` with the process it was open in, until something asks for it. */
  state: 'open' | 'lost' | 'opening';
  /** The process has been asked to open it. */
  isAsked: boolean;
  /** A process that dies would leave something of it: its lock, commands, MCP servers. So is each but one that is new and idle. */
  active: boolean;
  /** What waits for it to be open again, in order. */
  readonly held: Held[];
}

export const openingMethods: ReadonlySet<string> = new Set(['session/new', 'session/load', 'session/resume', 'session/fork']);
const closing = new Set(['session/close', 'session/delete']);
/** UTF-16 units of all that opens sessions again. Beyond them those that were opened first are given up, should the server die. */
const mostKept = 32 * 1024 * 1024;

export class KnownSessions {
  readonly #byId = new Map<string, KnownSession>();
  readonly #mostKept: number;
  #kept = 0;

  constructor(limit = mostKept) {
    this.#mostKept = limit;
  }

  get(id: string | undefined): KnownSession | undefined {
    return id === undefined ? undefined : this.#byId.get(id);
  }

  /** Learns from an answered request which sessions are open now. */
  learn(request: OpenRequest, response: LooseFrame): void {
    if (response.error !== undefined) return;
    if (closing.has(request.method) && request.sessionId !== undefined) this.forget(request.sessionId);
    if (request.resume === undefined) return;
    const given = member(response.result, 'sessionId');
    const id = typeof given === 'string' ? given : request.sessionId;
    if (id === undefined) return;
    this.forget(id);
    // A fork and a new session have an id that their request does not know.
    const resume = `{"sessionId":${JSON.stringify(id)},${request.resume.slice(1)}`;
    this.#byId.set(id, {
      id,
      resume,
      state: 'open',
      isAsked: false,
      active: request.method !== 'session/new' || hasServers(resume),
      held: [],
    });
    this.#kept += resume.length;
    for (const [oldest] of this.#byId) {
      if (this.#kept <= this.#mostKept) break;
      this.forget(oldest);
    }
  }

  forget(id: string): void {
    const session = this.#byId.get(id);
    this.#byId.delete(id);
    this.#kept -= session?.resume.length ?? 0;
  }

  /** The process is gone; gives those that were at work. */
  loseAll(): KnownSession[] {
    const active: KnownSession[] = [];
    for (const session of this.#byId.values()) {
      session.state = 'lost';
      session.isAsked = false;
      session.held.length = 0;
      if (session.active) active.push(session);
      session.active = false;
    }
    return active;
  }

  ids(): Iterable<string> {
    return this.#byId.keys();
  }

  values(): Iterable<KnownSession> {
    return this.#byId.values();
  }
}

function hasServers(resume: string): boolean {
  return !resume.includes('"mcpServers":[]');
}

/**
 * What opens the session again that these params open, but for its id: all that the log does not know. `undefined` for one that
 * is only looked at: it holds nothing that could be lost, and whoever looks loads it again.
 */
export function resumeOf(params: unknown): string | undefined {
  const extension = member(member(params, '_meta'), extensionName);
  if (member(extension, 'readOnly') === true) return undefined;
  const env = member(extension, 'env');
  const additionalDirectories = member(params, 'additionalDirectories');
  return JSON.stringify({
    cwd: member(params, 'cwd'),
    mcpServers: member(params, 'mcpServers') ?? [],
    ...(additionalDirectories === undefined ? {} : { additionalDirectories }),
    ...(env === undefined ? {} : { _meta: { [extensionName]: { env } } }),
  });
}
