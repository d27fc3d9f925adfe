/**
 * The process that holds a client's pipes while server processes come and go. It parses the client's frames and looks at the
 * server's; it runs no session and loads neither the SDK nor the agent.
 */
import type { Readable, Writable } from 'node:stream';
import { FrameDecoder } from '../../shared/framing/frame-decoder.ts';
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
  /** One line about a restart, for stderr. */
  readonly note: (text: string) => void;
}

/** Fulfils with the exit code, once the client has left or the server will not be started again. */
export async function supervise(options: SuperviseOptions): Promise<number> {
  return await new SupervisedConnection(options).run();
}

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
    this.#supervisor = new Supervisor({ toClient: (text) => this.#write(text) });
    this.#decoder = new FrameDecoder({ maxFrameBytes: options.maxFrameBytes }, (frame) => {
      if ('line' in frame) this.#supervisor.fromClient(frame.line);
      else this.#write(`${errorLine(null, 'FRAME_TOO_LARGE', `A line is longer than ${frame.oversized} bytes.`)}\n`);
    });
  }

  async run(): Promise<number> {
    const { input, output } = this.#options;
    output.on('error', () => this.#leave());
    output.on('drain', () => this.#child?.resume());
    input.on('data', (chunk: Buffer) => this.#read(chunk));
    input.on('error', () => this.#endInput());
    input.on('end', () => this.#endInput());
    input.pause();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#signalled(signal));
    for (;;) {
      const end = await this.#oneProcess();
      const code = end.code ?? 1;
      if (this.#leaving) return code;
      const delayMs = isFinal(end) ? undefined : this.#policy.next(performance.now());
      this.#supervisor.serverDied(end);
      if (delayMs === undefined) {
        this.#supervisor.giveUp(end);
        await this.#flushed();
        return code === 0 ? 0 : code;
      }
      this.#restarts += 1;
      this.#options.note(`the server process ${wordsOf(end)}; it is started again`);
      await this.#pauseFor(delayMs);
      if (this.#leaving) return 0;
    }
  }

  async #oneProcess(): Promise<ChildEnd> {
    const { input, server } = this.#options;
    const child: ServerChild = new ServerChild(server, this.#restarts, (chunk) => scanner.push(chunk));
    this.#child = child;
    child.onDrain(() => this.#resumeInput());
    const port = {
      send: (line: string): void => {
        if (!child.send(line)) input.pause();
      },
    };
    const scanner = this.#supervisor.begin(port, () => this.#resumeInput());
    // Behind what waited for this process.
    if (this.#inputEnded) child.end();
    const end = await child.ended;
    this.#child = undefined;
    input.pause();
    return end;
  }

  #read(chunk: Buffer): void {
    this.#decoder.push(chunk);
  }

  #resumeInput(): void {
    if (this.#supervisor.ready && !this.#inputEnded) this.#options.input.resume();
  }

  #write(text: string | Buffer): void {
    if (!this.#options.output.write(text)) this.#child?.pause();
  }

  #endInput(): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    this.#decoder.end();
    this.#leave();
  }

  /** The server takes itself down and says so with its end. */
  #leave(): void {
    this.#leaving = true;
    this.#child?.end();
    this.#wake();
  }

  #signalled(signal: NodeJS.Signals): void {
    this.#leaving = true;
    this.#child?.kill(signal);
    this.#wake();
  }

  #pauseFor(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve();
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

const lastWriteMs = 1000;
/** A wrong setting: no process will do better. */
const wrongSetting = 2;

/** An end that the server meant. */
function isFinal({ code }: ChildEnd): boolean {
  return code === 0 || code === wrongSetting;
}

function wordsOf({ code, signal }: ChildEnd): string {
  return signal === null ? `ended with code ${String(code)}` : `was ended by ${signal}`;
}
