/**
 * What a session of main is made of: who it is, and what it shares with the other sessions of the server.
 */
import type { ModelAccess, Profile, ServerConfig } from '../../shared/config.ts';
import type { PermissionMode } from '../../shared/events.ts';
import type { SessionPaths } from '../../shared/log/session-paths.ts';
import type { SessionChoices } from '../../shared/session-choices.ts';
import type { SessionOptions } from '../../shared/session-options.ts';
import type { ClientTraits } from '../../shared/thread-protocol.ts';
import type { SentSlot } from '../limiter/lane-slots.ts';
import type { ServerCounters } from '../telemetry/server-counters.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { McpHold } from '../threads/mcp-hold.ts';
import type { SessionWorkspace } from '../threads/session-task.ts';
import type { SessionThreads } from '../threads/session-threads.ts';
import type { ThreadLane } from '../threads/thread-lane.ts';
import type { Admission } from './admission.ts';
import type { ServerFigures } from './server-status.ts';
import type { Session } from './session.ts';
import type { SessionsOnThreads } from './sessions-on-threads.ts';
import type { TurnWatch } from './turn-watch.ts';

export interface SessionParts {
  readonly config: ServerConfig;
  readonly threads: SessionThreads;
  readonly admission: Admission;
  readonly turns: TurnWatch;
  readonly counters: ServerCounters;
  /**
   * A place at the model to send along with a prompt, where one is free; absent where no model needs one. Not for a session with
   * MCP servers: its turn may wait for them before it asks the model, and must hold no place meanwhile.
   */
  readonly slotAhead?: ((lane: ThreadLane, sessionId: string, priority: number) => SentSlot | undefined) | undefined;
  /** What `_status` says beside sessions. */
  readonly figures: () => ServerFigures;
  /**
   * When all threads are taken, asks one idle session to leave its own; one that would not is put into `unwilling`. Undefined
   * when there is room, or nobody left to ask: the caller attaches at once then, before another newcomer counts the same thread.
   */
  readonly makeRoom: (unwilling: Set<Session>) => Promise<void> | undefined;
  /** Where a session says that it is on a thread now; absent for one that is on the thread of another. */
  readonly onThreads?: SessionsOnThreads;
  /** A session has another mode now. Fulfils when those that work for it have it, too; never rejects. */
  readonly modeChanged: (sessionId: string, mode: PermissionMode) => Promise<void>;
  /** Whether the id is that of a session that works for another one now. */
  readonly worksForAnother: (sessionId: string) => boolean;
  /** How many work for another one now. */
  readonly delegated: () => number;
  /** Makes ready what the first turn waits for, while a person still types. Never throws. */
  readonly sessionMade?: () => void;
  /** MCP servers of sessions that are on no thread. */
  readonly mcp?: Pick<McpHold, 'openAhead' | 'ownMark' | 'release'>;
}

export interface SessionIdentity {
  readonly id: string;
  readonly cwd: string;
  readonly paths: SessionPaths;
  /** Fixed at creation or load, so that a later `initialize` cannot split a call from its result. */
  readonly client: ClientTraits;
  /** What of the session's events this connection is shown. */
  readonly profile: Profile;
  readonly options: SessionOptions;
  /** The model, and the key to it, as they were when the session was made or opened; absent as the settings have them. */
  readonly access?: ModelAccess;
  /** What a session that has no event yet begins with. */
  readonly choices?: SessionChoices;
  readonly workspace?: SessionWorkspace;
  /** See `SessionPlace`. */
  readonly heedsRefusals?: boolean;
  /** The session it works for, whose thread it is put on. */
  readonly beside?: AttachedSession;
}
