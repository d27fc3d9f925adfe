/**
 * One child process that speaks ACP, and the connection to it.
 *
 * Holds at most one running session at a time. Whatever the child does wrong either fails the call that met it, or marks
 * the child as not to be used again ({@link isSound}); it never throws from here. The child gets no file or terminal access:
 * such requests are answered with "method not found".
 */
import type {
  InitializeResponse,
  NewSessionRequest,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from '@agentclientprotocol/sdk';
import { ByteRing } from '../byte-ring.ts';
import type { ProcessGroup } from '../process-group.ts';
import { StreamPump } from '../stream-pump.ts';
import { ChildChannel } from './child-channel.ts';
import { ChildEnding, type Graces } from './child-ending.ts';
import { type ChildTraits, isRecord, readTraits } from './child-traits.ts';
import type { AcpClientLibrary } from './load-acp-client.ts';
import { SecretFilter } from './secret-filter.ts';
import { within } from '../within.ts';

/** The one version this client speaks. */
const protocolVersion = 1;
const keptStderrBytes = 8 * 1024;
const shownNoiseChars = 300;
/** A child that has ended shows it first by its pipes: for its exit status, and its last words. */
const exitNoticeMs = 300;
const lastWordsMs = 100;

/** Who hears of a session. Calls come in the order of the wire. */
export interface SessionListener {
  readonly sessionId: string;
  readonly onUpdate: (update: unknown) => void;
  readonly onPermission: (request: RequestPermissionRequest, withdrawn: AbortSignal) => Promise<RequestPermissionResponse>;
  /** The child wrote something, whatever it was. */
  readonly onSign: () => void;
}

export interface AcpChildParts {
  readonly group: ProcessGroup;
  readonly library: AcpClientLibrary;
  /** The directory of the process. */
  readonly cwd: string;
  /** What the child was started with; its secrets are kept out of diagnostics. */
  readonly environment: Readonly<Record<string, string>>;
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** Ends what has left the child's group. */
  readonly sweep: () => Promise<void>;
  /** All its processes that live now, in its group or out of it. */
  readonly members: () => readonly number[];
}

export class AcpChild {
  /** Where the process was started. */
  readonly cwd: string;
  /** Fulfils when nothing more comes from the child. Never rejects. */
  readonly closed: Promise<void>;
  readonly secrets: SecretFilter;
  readonly #parts: AcpChildParts;
  readonly #channel: ChildChannel;
  readonly #connection: ReturnType<ReturnType<AcpClientLibrary['client']>['connect']>;
  readonly #stderr = new ByteRing(keptStderrBytes);
  readonly #stderrPump: StreamPump;
  readonly #sessions = new Set<string>();
  #listener: SessionListener | undefined;
  #opening = false;
  #violation: string | undefined;
  #traits: ChildTraits | undefined;
  #ending: ChildEnding | undefined;

  constructor(parts: AcpChildParts) {
    this.#parts = parts;
    this.cwd = parts.cwd;
    this.secrets = new SecretFilter(parts.environment);
    this.#stderrPump = new StreamPump(parts.group.stderr, (chunk) => {
      this.#stderr.push(chunk);
      return undefined;
    });
    this.#channel = new ChildChannel(parts.group, {
      onUpdate: (params) => this.#takeUpdate(params),
      onViolation: (what) => this.#blame(what),
      onBytes: () => this.#listener?.onSign(),
    });
    this.#connection = parts.library
      .client({ name: parts.clientInfo.name })
      .onRequest('session/request_permission', ({ params, signal }) => this.#takePermission(params, signal))
      .connect(this.#channel.stream);
    this.closed = this.#connection.closed;
    void this.#closeAfterExit();
  }

  /** True as long as the child kept to the protocol and lives: only then may it serve another run. */
  get isSound(): boolean {
    return this.#violation === undefined && this.#ending === undefined && !this.isClosed && !this.#parts.group.hasExited;
  }

  /** True when neither side waits for an answer of the other. */
  get isQuiet(): boolean {
    return this.#channel.inbox.isQuiet;
  }

  /** Nothing more comes from it. */
  get isClosed(): boolean {
    return this.#connection.signal.aborted;
  }

  get isInitialized(): boolean {
    return this.#traits !== undefined;
  }

  /** Set by {@link initialize}. */
  get traits(): ChildTraits {
    if (this.#traits === undefined) throw new Error('the child has not been initialized');
    return this.#traits;
  }

  /** Rejects with what the child answered, or with the reason why it cannot be used. */
  async initialize(): Promise<void> {
    const { clientInfo } = this.#parts;
    const response: unknown = await this.#connection.agent.request('initialize', { protocolVersion, clientCapabilities: {}, clientInfo });
    const version = isRecord(response) ? response['protocolVersion'] : undefined;
    if (version !== protocolVersion) {
      const got = typeof version === 'number' ? `version ${version}` : 'no version';
      throw new Error(`it speaks ${got} of the protocol, and this server version ${protocolVersion}`);
    }
    this.#traits = readTraits(response as InitializeResponse);
  }

  /** The id of a fresh session. */
  async newSession(params: NewSessionRequest): Promise<string> {
    this.#opening = true;
    try {
      const response: unknown = await this.#connection.agent.request('session/new', params);
      const id = isRecord(response) ? response['sessionId'] : undefined;
      if (typeof id !== 'string' || id === '') throw new Error('it gave no session id');
      if (this.#sessions.has(id)) throw new Error('it gave the id of an earlier session');
      this.#sessions.add(id);
      return id;
    } finally {
      this.#opening = false;
    }
  }

  /** Hears a session from now on, in place of the last one. */
  listen(listener: SessionListener | undefined): void {
    this.#listener = listener;
  }

  /** Fulfils with the child's answer. Rejects when it refused, or is gone. */
  async prompt(sessionId: string, text: string): Promise<PromptResponse> {
    return await this.#connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  }

  /** All its processes that live now; costs a look at the process table. */
  members(): readonly number[] {
    return this.#parts.members();
  }

  /** Asks, and does not wait. */
  cancel(sessionId: string): void {
    // A child that is gone has stopped already.
    this.#connection.agent.notify('session/cancel', { sessionId }).catch(() => undefined);
  }

  /** False when the child did not close the session in time. */
  async closeSession(sessionId: string, limitMs: number): Promise<boolean> {
    const closed = this.#connection.agent.request('session/close', { sessionId }).then(
      () => true,
      () => false,
    );
    return await within(closed, limitMs, false);
  }

  /**
   * Ends the process and proves it. One ladder, however often it is called; a later call can only make it quicker.
   * Fulfils when nothing is left.
   */
  async end(graces: Graces): Promise<void> {
    this.listen(undefined);
    if (this.#ending === undefined) this.#ending = new ChildEnding(this.#parts.group, graces, this.#parts.sweep);
    else this.#ending.hurry(graces);
    await this.#ending.done;
    // Somebody who left the group may hold the pipes still.
    this.#channel.fail();
    this.#stderrPump.destroy();
    this.#connection.close();
  }

  /** Why the child is gone, and its last words: for people, without secrets. To be asked once {@link closed}. */
  async lastWords(): Promise<string> {
    const how = this.#channel.failure ?? (await this.#howItEnded());
    return [how, this.stderrTail()].filter((part) => part !== '').join('\n');
  }

  /** The end of what the child wrote beside the protocol, without secrets. */
  stderrTail(): string {
    const text = this.#stderr.since(0).toString('utf8');
    // The first word of a cut text may be the rest of a secret, which nobody would recognize.
    const whole = this.#stderr.total > keptStderrBytes ? text.replace(/^\S*\s?/, '') : text;
    const tail = this.secrets.clean(whole).trim();
    const noise = this.secrets.clean(this.#channel.inbox.noise).trim().slice(0, shownNoiseChars);
    return [tail, noise === '' ? '' : `on stdout: ${noise}`].filter((part) => part !== '').join('\n');
  }

  async #howItEnded(): Promise<string> {
    const status = await within(this.#parts.group.exited, exitNoticeMs, undefined);
    if (status === undefined) return 'it closed its stdin or its stdout';
    await within(this.#stderrPump.ended, lastWordsMs, undefined);
    return status.signal === null ? `it exited with code ${status.exitCode}` : `it was ended by ${status.signal}`;
  }

  #blame(what: string): void {
    this.#violation ??= what;
  }

  #takeUpdate(params: unknown): void {
    if (!isRecord(params)) return this.#blame('an update without a session');
    const { sessionId, update } = params;
    if (this.#listener !== undefined && sessionId === this.#listener.sessionId) return this.#listener.onUpdate(update);
    // A new session may speak before its id has been told.
    const isNew = this.#opening && typeof sessionId === 'string' && !this.#sessions.has(sessionId);
    if (!isNew) this.#blame('an update of another session');
  }

  async #takePermission(request: RequestPermissionRequest, withdrawn: AbortSignal): Promise<RequestPermissionResponse> {
    const listener = this.#listener;
    if (listener?.sessionId === request.sessionId) return await listener.onPermission(request, withdrawn);
    this.#blame('a permission request of another session');
    return { outcome: { outcome: 'cancelled' } };
  }

  /**
   * A leader that failed takes its connection along; one that ended well may have left its work to a child of its own, so
   * the connection ends with the group then.
   */
  async #closeAfterExit(): Promise<void> {
    const { exitCode } = await this.#parts.group.exited;
    if (exitCode === 0) await this.#parts.group.gone;
    await within(this.closed, exitNoticeMs, undefined);
    this.#channel.fail();
  }
}
