/**
 * The process that holds a client's pipes while server processes come and go. It parses the client's frames and looks at the
 * server's; it runs no session and loads neither the SDK nor the agent.
 */
import type { Readable, Writable } from 'node:stream';
import { FrameDecoder } from '../../shared/framing/frame-decoder.ts';
import { orderlyExit } from '../../shared/supervised.ts';
import { wordsOf } from './answers.ts';
import { errorLine } from './frames.ts';
import { RestartPolicy } from './restart-policy.ts';
import { type ChildEnd, ServerChild, type ServerCommand } from './server-child.ts';
import { Supervisor } from './supervisor.ts';

export interface SuperviseOptions {
  readonly input: Readable;
  /** Takes the protocol and nothing else. */
  readonly output: Writable;
  readonly server: ServerCommand;
  readonly maxFrameBytes: number;
  /** Within a minute. */
  readonly maxRestarts: number;
  /** What the server itself takes to end in order. */
  readonly shutdownGraceMs: number;
  /** One line about a restart, for stderr. */
  readonly note: (text: string) => void;
}

/** Fulfils with the exit code, once the client has left or the server will not be started again; all that was written has left then. */
export async function supervise(options: SuperviseOptions): Promise<number> {
  return await new SupervisedConnection(options).run();
}

const lastWriteMs = 1000;
/** Beyond its own grace a server that has been told to end is killed: its main thread does not react. */
const extraGraceMs = 5_000;
/** A wrong setting: no process will do better. */
const wrongSetting = 2;

class SupervisedConnection {
  readonly #options: SuperviseOptions;
  readonly #supervisor: Supervisor;
  readonly #policy: RestartPolicy;
  readonly #decoder: FrameDecoder;
  #child: ServerChild | undefined;
  #restarts = 0;
  /** The client has left, or somebody wants us to: the next end is the last. */
  #leaving = false;
  #inputEnded = false;
  #wake: () => void = () => undefined;

  constructor(options: SuperviseOptions) {
    this.#options = options;
    this.#policy = new RestartPolicy(options.maxRestarts);
    this.#supervisor = new Supervisor({ toClient: (text) => this.#write(text), onRegulate: () => this.#regulate() });
    this.#decoder = new FrameDecoder({ maxFrameBytes: options.maxFrameBytes }, (frame) => {
      if ('line' in frame) this.#supervisor.fromClient(frame.line);
      else this.#write(`${tooLong(frame.oversized)}\n`);
    });
  }

  async run(): Promise<number> {
    const { input, output } = this.#options;
    output.on('error', () => this.#leave());
    output.on('drain', () => {
      this.#child?.resume();
      this.#regulate();
    });
    input.on('data', (chunk: Buffer) => {
      this.#decoder.push(chunk);
      this.#regulate();
    });
    input.on('error', () => this.#endInput());
    input.on('end', () => this.#endInput());
    input.pause();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#signalled(signal));
    const code = await this.#serve();
    await this.#flushed();
    return code;
  }

  async #serve(): Promise<number> {
    for (;;) {
      const { end, served } = await this.#oneProcess();
      this.#supervisor.serverDied(end);
      const delayMs = this.#nextIn(end, served);
      if (delayMs === undefined) {
        this.#supervisor.giveUp(end);
        return exitCode(end);
      }
      this.#restarts += 1;
      this.#options.note(`the server process ${wordsOf(end)}; it is started again`);
      await this.#pauseFor(delayMs);
      if (this.#leaving) {
        this.#supervisor.giveUp(end);
        return 0;
      }
    }
  }

  /** Milliseconds until the next process; `undefined` when there will be none. */
  #nextIn(end: ChildEnd, served: boolean): number | undefined {
    if (this.#leaving || end.code === orderlyExit || (end.code === wrongSetting && !served)) return undefined;
    const delayMs = this.#policy.next(performance.now(), served);
    if (delayMs === undefined) this.#options.note(`the server process ${wordsOf(end)}; it died too often to be started again`);
    return delayMs;
  }

  async #oneProcess(): Promise<{ readonly end: ChildEnd; readonly served: boolean }> {
    let served = false;
    const child: ServerChild = new ServerChild(this.#options.server, this.#restarts, {
      onData: (chunk) => {
        served = true;
        scanner.push(chunk);
      },
      onDrain: () => this.#regulate(),
    });
    this.#child = child;
    const scanner = this.#supervisor.begin({ send: (line) => child.send(line) });
    this.#regulate();
    const end = await child.ended;
    this.#child = undefined;
    this.#options.input.pause();
    return { end, served };
  }

  /** Reads the client on, or lets it wait, by what waits on both sides. */
  #regulate(): void {
    const { input, output } = this.#options;
    if (this.#inputEnded) return;
    if (this.#child !== undefined && !this.#child.isFull && this.#supervisor.wantsInput && !output.writableNeedDrain) input.resume();
    else input.pause();
  }

  #write(text: string | Buffer): void {
    if (!this.#options.output.write(text)) this.#child?.pause();
  }

  #endInput(): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    this.#decoder.end();
    this.#supervisor.clientLeft();
    this.#leave();
  }

  /** The server takes itself down and says so with its end. */
  #leave(): void {
    this.#leaving = true;
    this.#child?.end(this.#graceMs);
    this.#wake();
  }

  #signalled(signal: NodeJS.Signals): void {
    this.#leaving = true;
    this.#child?.signal(signal, this.#graceMs);
    this.#wake();
  }

  get #graceMs(): number {
    return this.#options.shutdownGraceMs + extraGraceMs;
  }

  #pauseFor(ms: number): Promise<void> {
    if (ms === 0 || this.#leaving) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** What was written last has left, or cannot. */
  #flushed(): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, lastWriteMs).unref();
      this.#options.output.write('', () => resolve());
    });
  }
}

function tooLong(bytes: number): string {
  return errorLine(null, 'FRAME_TOO_LARGE', `Invalid request: the frame is longer than ${bytes} bytes; it was skipped.`);
}

function exitCode({ code }: ChildEnd): number {
  if (code === orderlyExit) return 0;
  // A stray `exit(0)` is a death as any other.
  return code === null || code === 0 ? 1 : code;
}
