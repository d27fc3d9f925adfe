/** A thread context in this process and what main holds of it: sessions are hosted over real ports, with real logs. */
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import type { Test } from 'tap';
import type { BrokerApi } from '../../../../src/shared/broker-protocol.ts';
import { expose, portEndpoint, type Remote, wrap } from '../../../../src/shared/comlink.ts';
import type { SessionSettings } from '../../../../src/shared/config.ts';
import type { LogEvent, PromptBlock, SessionHeader } from '../../../../src/shared/events.ts';
import { logVersion } from '../../../../src/shared/events.ts';
import { createSessionFile, type SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import type {
  Completion,
  DataBatch,
  SessionApi,
  SessionStarted,
  SessionTask,
  ThreadPorts,
} from '../../../../src/shared/thread-protocol.ts';
import { hostSession } from '../../../../src/worker/session/host-session.ts';
import { createThreadContext, type ThreadContext } from '../../../../src/worker/session/thread-context.ts';

export class HostRig {
  readonly thread: ThreadContext = createThreadContext(5);
  readonly stateDir: string;
  readonly cwd: string;
  readonly frames: any[] = [];
  readonly completions: Completion[] = [];
  readonly released: string[] = [];
  background = 0;
  ports: ThreadPorts | undefined;
  readonly #settings: Partial<SessionSettings>;
  #sessions = 0;
  #wake: () => void = () => undefined;

  /** @param settings over those of a plain editor's session */
  constructor(t: Test, settings: Partial<SessionSettings> = {}) {
    this.#settings = settings;
    this.stateDir = t.testdir({ work: {} });
    this.cwd = `${this.stateDir}/work`;
    t.teardown(() => {
      for (const port of [this.ports?.data, this.ports?.control, this.ports?.broker]) port?.close();
    });
  }

  create(): { id: string; paths: SessionPaths } {
    this.#sessions += 1;
    const id = `00000000-0000-7000-8000-${String(this.#sessions).padStart(12, '0')}`;
    const header: SessionHeader = {
      type: 'session',
      version: logVersion,
      id,
      createdAt: new Date().toISOString(),
      cwd: this.cwd,
      agent: { name: 'test', version: '0' },
    };
    return { id, paths: createSessionFile(this.stateDir, header) };
  }

  /** Attaches a session; `hosted` fulfils when it has left. */
  async attach({ id, paths }: { id: string; paths: SessionPaths }, nonce = 'server') {
    const { port1, port2 } = new MessageChannel();
    const hosted = hostSession(this.#task(id, paths, { port: port2, nonce }), this.thread);
    const [started] = (await once(port1, 'message')) as [SessionStarted];
    if (started.kind === 'started' && started.ports !== undefined) this.#take(started.ports);
    const api = wrap<SessionApi>(portEndpoint(port1));
    return { started, hosted, api, port: port1 };
  }

  async prompt(api: Remote<SessionApi>, requestId: number, prompt: string | PromptBlock[]): Promise<Completion> {
    await api.prompt(requestId, typeof prompt === 'string' ? [{ type: 'text', text: prompt }] : prompt, {});
    return await this.completion(requestId);
  }

  async completion(requestId: number): Promise<Completion> {
    for (;;) {
      const found = this.completions.find((one) => one.requestId === requestId);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #task(sessionId: string, paths: SessionPaths, { port, nonce }: { port: SessionTask['port']; nonce: string }): SessionTask {
    return {
      sessionId,
      cwd: this.cwd,
      logPath: paths.log,
      lockPath: paths.lock,
      spillDir: paths.spillDir,
      ownDirectories: [this.stateDir],
      isolation: 'dedicated',
      serverNonce: nonce,
      client: { terminalOutput: false },
      options: {},
      port,
      settings: {
        profile: 'editor',
        model: { kind: 'scripted', paceMs: 1 },
        systemPrompt: undefined,
        titles: 'off',
        instructions: 'off',
        userInstructions: undefined,
        clientFiles: 'off',
        mode: 'full-access',
        permissionTimeoutMs: 0,
        budget: { maxSteps: 50, maxToolCalls: 50, maxTokens: 0, maxWallMs: 0, maxCostUsd: 0 },
        maxParallelToolCalls: 4,
        maxUpdatesPerSecond: 0,
        commandTimeoutMs: 5000,
        mcp: { connectMs: 10_000, firstWaitMs: 5000, callMs: 10_000, idleMs: 60_000 },
        ripgrepPath: undefined,
        policy: undefined,
        prices: undefined,
        subagents: [],
        undo: 'files',
        trace: false,
        ...this.#settings,
      },
    };
  }

  #take(ports: ThreadPorts): void {
    this.ports = ports;
    ports.data.on('message', (batch: DataBatch) => {
      for (const line of batch.text.split('\n').filter((one) => one !== '')) this.frames.push(JSON.parse(line));
      this.completions.push(...batch.completions);
      this.#wake();
    });
    const broker: Pick<BrokerApi, 'countBackground' | 'releaseOwner'> = {
      countBackground: async () => this.background,
      releaseOwner: async (owner) => void this.released.push(owner),
    };
    expose(broker, portEndpoint(ports.broker));
    expose({ log: async () => undefined }, portEndpoint(ports.control));
  }
}

export function events(paths: SessionPaths): LogEvent[] {
  const lines = readFileSync(paths.log, 'utf8').trimEnd().split('\n').slice(1);
  return lines.map((line) => JSON.parse(line) as LogEvent);
}

/** What the agent has said on the wire. */
export const say = (rig: HostRig): string =>
  rig.frames.flatMap(({ params }) => (params.update.sessionUpdate === 'agent_message_chunk' ? [params.update.content.text] : [])).join('');
