/**
 * The edge of a server: stdio, the agent app on it, and the one way down. The rest, {@link Runtime}, starts behind the answer
 * to `initialize`.
 */
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import type { AgentConnection } from '@agentclientprotocol/sdk';
import type { ServerConfig } from '../shared/config.ts';
import { settingsSecrets } from '../shared/known-secrets.ts';
import { createAgentApp } from './acp/agent-app.ts';
import type { Launch } from './acp/auth/auth-methods.ts';
import { accessOf, Credentials, type CredentialsParts } from './acp/auth/credentials.ts';
import { findCommandFiles } from '../shared/commands/command-files.ts';
import { ClientChannel } from './acp/client-channel.ts';
import { CommandLists } from './acp/command-lists.ts';
import { PermissionChannel } from './acp/permission-channel.ts';
import { Diagnostics } from './diagnostics.ts';
import type { Runtime, RuntimeParts } from './runtime.ts';
import { onceStopped, type StopCause } from './stop-cause.ts';
import { type AgentStream, createAgentStream } from './transport/agent-stream.ts';
import { FrameWriter } from './transport/frame-writer.ts';
import { takeStdout } from './transport/stdout-guard.ts';

export interface ServeOptions
  extends Pick<RuntimeParts, 'sessionThreadPath' | 'brokerPath' | 'withheldVariables' | 'configDirectories' | 'supervised'> {
  readonly input: Readable;
  /** What carries both ways in place of stdio, under a supervisor. */
  readonly socket?: Socket;
  /** Absent where no key is stored for anybody, and none is looked for. */
  readonly credentials?: Omit<CredentialsParts, 'configured'>;
  /** Absolute path of the ripgrep binary, looked for once the first answer is out; absent where the configuration has it. */
  readonly findRipgrep?: () => Promise<string | undefined>;
  /** Keeps compiled code for the next start. Takes a few milliseconds, so it is called when the server has been up for a while. */
  readonly keepCode?: (() => void) | undefined;
  /** How this program was started. */
  readonly launch?: Launch;
}

/**
 * Serves one ACP client until end of input, a broken or stalled output, or a signal; then takes everything down.
 *
 * @returns the exit code: 0 for every orderly end, 1 after an unexpected fault
 */
export async function serve(config: ServerConfig, options: ServeOptions): Promise<number> {
  // First of all: from here on nothing but the frame writer reaches stdout.
  const output = takeStdout(options.socket);
  const server = new Server(config, options, output);
  const cause = await server.run();
  return await server.stop(cause);
}

class Server {
  readonly #config: ServerConfig;
  readonly #options: ServeOptions;
  readonly #diagnostics: Diagnostics;
  readonly #permissions: PermissionChannel;
  readonly #clientChannel: ClientChannel;
  readonly #stopped: ReturnType<typeof onceStopped>;
  readonly #writer: FrameWriter;
  readonly #stream: AgentStream;
  readonly #commands: CommandLists;
  #connection: AgentConnection | undefined;
  #starting: Promise<Runtime> | undefined;
  #runtime: Runtime | undefined;

  constructor(config: ServerConfig, options: ServeOptions, output: Writable) {
    this.#config = config;
    this.#options = options;
    this.#diagnostics = new Diagnostics(config.logLevel, undefined, settingsSecrets(config.session));
    this.#diagnostics.adoptConsole();
    this.#permissions = new PermissionChannel(
      () => this.#connection?.client,
      (sessionId) => this.#runtime?.sessions.find(sessionId)?.identity,
    );
    this.#clientChannel = new ClientChannel(
      () => this.#connection?.client,
      (sessionId) => this.#runtime?.sessions.find(sessionId)?.identity,
    );
    this.#stopped = onceStopped(this.#diagnostics, () => this.#runtime?.killChildrenNow());
    this.#writer = new FrameWriter(output, {
      stalledReaderMs: config.stalledReaderMs,
      onBroken: (reason) => this.#stopped.because({ kind: 'output-broken', reason }),
    });
    this.#commands = new CommandLists({
      write: (line) => this.#writer.write(line),
      isOpen: (session) => this.#runtime?.sessions.find(session.identity.id) === session,
      findFiles: findCommandFiles,
    });
    this.#stream = createAgentStream({
      input: options.input,
      writer: this.#writer,
      maxFrameBytes: config.maxFrameBytes,
      onEnd: () => this.#stopped.because({ kind: 'input-ended' }),
      onNote: (level, text) => this.#diagnostics.log(level, text),
      onOutgoing: (message) => this.#commands.outgoing(message),
    });
  }

  /** Fulfils with the reason to stop. */
  async run(): Promise<StopCause> {
    const app = createAgentApp({
      config: this.#config,
      diagnostics: this.#diagnostics,
      credentials: new Credentials({
        keyVariable: 'DEEPSEEK_API_KEY',
        ...this.#options.credentials,
        configured: accessOf(this.#config.session),
      }),
      launch: this.#options.launch ?? { command: process.execPath, args: [], env: {} },
      isSupervised: this.#options.supervised !== undefined,
      commands: this.#commands,
      sessions: async () => (await this.#start()).sessions,
      sessionsIfStarted: () => this.#runtime?.sessions,
      onInitialize: () => setImmediate(() => void this.#startBehindAnswer()),
    });
    this.#connection = app.connect(this.#stream);
    return await this.#stopped.cause;
  }

  /** Refuses new work, takes the runtime down, writes the last frame. */
  async stop(cause: StopCause): Promise<number> {
    const runtime = await this.#starting?.catch(() => undefined);
    await runtime?.stop(cause.kind === 'fault');
    await this.#lastWrite(cause);
    this.#stream.stop();
    this.#connection?.close();
    return cause.kind === 'fault' ? 1 : 0;
  }

  /** Responses leave through promises of the SDK, and some handlers still find out that the server is going down. */
  async #lastWrite(cause: StopCause): Promise<void> {
    if (cause.kind === 'output-broken') return;
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, lastWriteMs).unref());
    await Promise.race([this.#stream.allAnswered(), deadline]);
    await Promise.race([this.#writer.idle(), deadline]);
  }

  /** The answer to `initialize` first: loading the rest holds the thread for as long as everything before it. */
  async #startBehindAnswer(): Promise<void> {
    await this.#stream.allAnswered();
    await this.#writer.idle();
    await this.#start().catch((error: unknown) => this.#stopped.because({ kind: 'fault', error }));
  }

  #start(): Promise<Runtime> {
    this.#starting ??= this.#startNow();
    return this.#starting;
  }

  async #startNow(): Promise<Runtime> {
    const [module, ripgrepPath] = await Promise.all([import('./runtime.ts'), this.#options.findRipgrep?.()]);
    const { session } = this.#config;
    this.#runtime = await module.Runtime.start({
      ...this.#options,
      config: { ...this.#config, session: { ...session, ripgrepPath: ripgrepPath ?? session.ripgrepPath } },
      writer: this.#writer,
      diagnostics: this.#diagnostics,
      permissions: this.#permissions,
      clientChannel: this.#clientChannel,
    });
    if (this.#options.keepCode !== undefined) setTimeout(this.#options.keepCode, codeKeptAfterMs).unref();
    return this.#runtime;
  }
}

/** By then a client has opened its first session, and the code for that is kept with the rest. */
const codeKeptAfterMs = 2_000;

/** How long a client that does not read may hold up the end. */
const lastWriteMs = 1000;
