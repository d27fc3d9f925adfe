/**
 * One ACP connection to one agent process, spoken through the SDK: `initialize`, and then the sessions of many jobs beside each other.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  client,
  type ClientConnection,
  type InitializeResponse,
  methods,
  type NewSessionResponse,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from '@agentclientprotocol/sdk';
import { markVariable } from '../job-environment.ts';
import { extensionOf, membersOf } from './agent-answer.ts';
import { AgentFault, toAgentFault } from './agent-fault.ts';
import { type AgentCommand, AgentProcess } from './agent-process.ts';
import { agentStream, type RawUpdate } from './agent-stream.ts';

/** A launcher may have to download the agent first. */
const initializeLimitMs = 120_000;
const newSessionLimitMs = 120_000;
const closeLimitMs = 10_000;
const shownErrorChars = 600;
/** A grandchild may hold the agent's output open for ever. */
const lastWordsMs = 1_000;

/** Who gets what the agent sends for a session. */
export interface SessionListener {
  onUpdate(update: RawUpdate['update']): void;
  decide(request: RequestPermissionRequest): RequestPermissionResponse;
}

export class AgentConnection {
  readonly process: AgentProcess;
  /** Of the agent's process; its sessions' commands should carry it too. */
  readonly mark: string;
  /** Fulfils with what happened once nothing more can be asked of the agent. Never rejects. */
  readonly lost: Promise<string>;
  /** What the agent said to `initialize`. */
  #initialized: InitializeResponse | undefined;
  readonly #connection: ClientConnection;
  readonly #listeners = new Map<string, SessionListener>();
  #isLost = false;

  private constructor(command: AgentCommand) {
    this.process = new AgentProcess(command);
    this.mark = command.env[markVariable] ?? '';
    const stream = agentStream(this.process.stdout, this.process.stdin, {
      onUpdate: ({ sessionId, update }) => this.#listeners.get(sessionId)?.onUpdate(update),
    });
    this.#connection = client({ name: 'dsh-acp-run' })
      .onRequest(methods.client.session.requestPermission, ({ params }) => {
        return this.#listeners.get(params.sessionId)?.decide(params) ?? { outcome: { outcome: 'cancelled' } };
      })
      .connect(stream);
    this.lost = this.#watch();
  }

  /**
   * Starts the agent and initializes it. An abort ends the start, and does nothing later.
   *
   * @throws AgentFault of class `agent`; then nothing of it is left
   */
  static async start(command: AgentCommand, clientVersion: string, signal: AbortSignal): Promise<AgentConnection> {
    const connection = new AgentConnection(command);
    const giveUp = (): void => connection.process.kill();
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      connection.#initialized = await connection.request<InitializeResponse>(
        methods.agent.initialize,
        {
          protocolVersion: PROTOCOL_VERSION,
          clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
          clientInfo: { name: 'dsh-acp-run', version: clientVersion },
        },
        initializeLimitMs,
      );
      const { protocolVersion } = connection.#initialized;
      if (protocolVersion !== PROTOCOL_VERSION)
        throw new AgentFault('agent', `it speaks version ${protocolVersion} of ACP, not ${PROTOCOL_VERSION}`, { retryable: false });
      return connection;
    } catch (error) {
      const fault = error as AgentFault;
      const tail = connection.process.stderrTail(shownErrorChars);
      connection.process.kill();
      await connection.process.stop();
      const words = `the agent did not start: ${fault.message}${tail === '' || fault.message.includes(tail) ? '' : `; its stderr: ${tail}`}`;
      throw new AgentFault('agent', words, { retryable: true });
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Name and version, as the agent gives them. */
  get agentName(): string {
    const { agentInfo } = this.#initialized ?? {};
    return agentInfo === undefined || agentInfo === null ? 'agent' : `${agentInfo.name} ${agentInfo.version}`;
  }

  /** Whether the agent understands this member of `_meta["dsh-acp"]` in that method. */
  understands(method: string, name: string): boolean {
    const names = membersOf(membersOf(extensionOf(this.#initialized?.agentCapabilities)?.['extensions']))[method];
    return Array.isArray(names) && names.includes(name);
  }

  /** Whether the agent is this program. */
  get isOwn(): boolean {
    return extensionOf(this.#initialized?.agentCapabilities) !== undefined;
  }

  get canClose(): boolean {
    return (this.#initialized?.agentCapabilities?.sessionCapabilities?.close ?? undefined) !== undefined;
  }

  listen(sessionId: string, listener: SessionListener): void {
    this.#listeners.set(sessionId, listener);
  }

  forget(sessionId: string): void {
    this.#listeners.delete(sessionId);
  }

  /** @throws AgentFault */
  async newSession(cwd: string, meta: object | undefined): Promise<NewSessionResponse> {
    const params = { cwd, mcpServers: [], ...(meta === undefined ? {} : { _meta: { 'dsh-acp': meta } }) };
    return await this.request<NewSessionResponse>(methods.agent.session.new, params, newSessionLimitMs);
  }

  /** A notification: what comes of it shows in the prompt's answer. */
  cancel(sessionId: string): void {
    this.#connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined);
  }

  /** Never rejects: a session that cannot be closed ends with its agent. */
  async close(sessionId: string): Promise<void> {
    if (this.#isLost || !this.canClose) return;
    await this.request(methods.agent.session.close, { sessionId }, closeLimitMs).catch(() => undefined);
  }

  /** @param limitMs `undefined` waits for as long as the agent takes. @throws AgentFault */
  async request<Response>(method: string, params: object, limitMs: number | undefined): Promise<Response> {
    let timer: NodeJS.Timeout | undefined;
    try {
      const answer = this.#connection.agent.request<Response, object>(method, params);
      if (limitMs === undefined) return await answer;
      const limit = new Promise<never>((_, reject) => {
        const late = new AgentFault('agent', `it did not answer ${method} within ${limitMs} ms`, { retryable: true });
        timer = setTimeout(() => reject(late), limitMs);
      });
      return await Promise.race([answer, limit]);
    } catch (error) {
      if (!this.#connection.signal.aborted) throw toAgentFault(error, () => (error instanceof Error ? error.message : String(error)));
      const why = await this.lost;
      throw toAgentFault(error, () => this.#lostText(why));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Its exit says more than the end of its output, and what it wrote last is still on its way then: both are waited for, a while. */
  async #watch(): Promise<string> {
    const { closed } = this.#connection;
    await Promise.race([this.process.ended, closed]);
    const patience = delay(lastWordsMs, undefined, { ref: false });
    const why = await Promise.race([this.process.ended, patience.then(() => 'it closed its output')]);
    await Promise.race([closed, patience]);
    this.#isLost = true;
    this.#connection.close();
    return why;
  }

  #lostText(why: string): string {
    const tail = this.process.stderrTail(shownErrorChars);
    return `the agent was lost: ${why}${tail === '' ? '' : `; its stderr: ${tail}`}`;
  }
}
