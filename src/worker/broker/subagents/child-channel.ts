/**
 * The pipes of a child as the stream that the SDK wants: messages instead of bytes, in both directions.
 */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import type { ProcessGroup } from '../process-group.ts';
import { StreamPump } from '../stream-pump.ts';
import { ChildInbox } from './child-inbox.ts';

export interface ChannelSinks {
  readonly onUpdate: (params: unknown) => void;
  readonly onViolation: (what: string) => void;
  /** Bytes came. */
  readonly onBytes: () => void;
}

export class ChildChannel {
  readonly stream: Stream;
  readonly inbox: ChildInbox;
  readonly #pump: StreamPump;
  #source: ReadableStreamDefaultController<AnyMessage> | undefined;
  #failure: string | undefined;

  constructor(group: ProcessGroup, sinks: ChannelSinks) {
    const { stdin } = group;
    if (stdin === undefined) throw new Error('an ACP child needs a stdin that can be written to');
    this.inbox = new ChildInbox({
      onUpdate: sinks.onUpdate,
      onViolation: sinks.onViolation,
      onMessage: (message) => this.#source?.enqueue(message),
      onFatal: (reason) => this.fail(reason),
    });
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (source) => void (this.#source = source),
        // The connection was closed from here: nobody reads any more.
        cancel: () => void (this.#source = undefined),
      }),
      writable: new WritableStream<AnyMessage>({
        write: async (message) => {
          this.inbox.noteSent(message);
          await new Promise<void>((resolve, reject) => {
            stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
          });
        },
      }),
    };
    this.#pump = new StreamPump(group.stdout, (chunk) => {
      sinks.onBytes();
      return this.inbox.push(chunk);
    });
    void this.#pump.ended.then(() => this.#close());
  }

  /** Why nothing more is read, when the child is to blame. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Reads no more, whoever still holds the other end. */
  fail(reason?: string): void {
    this.#failure ??= reason;
    this.#pump.destroy();
  }

  #close(): void {
    this.inbox.end();
    this.#source?.close();
    this.#source = undefined;
  }
}
