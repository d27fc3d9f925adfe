/**
 * Stands in for `node:worker_threads` and for piscina where the server starts threads: what would run on a thread of its own runs here, on
 * the main thread, over the same ports. Nothing else of the server is changed, so the difference to it is what threads cost and give.
 */
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { MessageChannel as Channel, type MessagePort, type Transferable } from 'node:worker_threads';
import type { SessionTask } from '../../../src/shared/thread-protocol.ts';
import { serveBroker } from '../../../src/worker/broker/serve-broker.ts';
import { hostSession } from '../../../src/worker/session/host-session.ts';
import { threadContext } from '../../../src/worker/session/thread-context.ts';

/** Of the only thread there is. Not 0, which is main's. */
export const threadId = 1;
/** What the broker was started with. */
export let workerData: unknown;

/** Ends of channels that a thread would take along when it ends. */
const ownPorts: MessagePort[] = [];

export class MessageChannel extends Channel {
  constructor() {
    super();
    ownPorts.push(this.port1);
  }
}

/** The broker. */
export class Worker extends EventEmitter {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly #port: MessagePort;

  constructor(_path: string, options: { readonly workerData: unknown }) {
    super();
    workerData = options.workerData;
    const { port1, port2 } = new Channel();
    this.#port = port1;
    port1.on('message', (message: unknown) => this.emit('message', message));
    serveBroker(port2);
  }

  postMessage(message: unknown, transfer: readonly Transferable[]): void {
    this.#port.postMessage(message, transfer);
  }

  async terminate(): Promise<void> {
    this.#port.close();
    this.emit('exit', 0);
  }
}

class OnlyThread extends EventEmitter {
  readonly threadId = threadId;

  /** It cannot be ended alone: what asks for it is a session that is stuck, and so is everything. */
  async terminate(): Promise<void> {
    process.exit(1);
  }
}

export class Piscina extends EventEmitter {
  readonly threads = [new OnlyThread()];

  /** A task that keeps a thread spare has nothing to keep. */
  async run(task: SessionTask, options: { readonly name?: string } = {}): Promise<void> {
    if (options.name === undefined) await hostSession(task, threadContext());
  }

  async destroy(): Promise<void> {
    for (const port of ownPorts) port.close();
    for (const thread of this.threads) thread.emit('exit', 0);
  }
}
