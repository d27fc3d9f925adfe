/**
 * The connection to the client as the SDK's agent app sees it: a stream of checked messages over raw bytes.
 *
 * It stands between stdin, the frame writer and `agent().connect()`, and closes the gaps that the SDK leaves: bad frames
 * never end the connection, frames that come before `initialize` is answered wait, messages of one session keep their
 * order, ids are never answered twice, and the end of input is an event instead of a lost response.
 */
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import type { DecodedFrame } from '../../shared/framing/frame-decoder.ts';
import { FrameDecoder } from '../../shared/framing/frame-decoder.ts';
import { errorFrame, type RequestId, readEnvelope } from './envelope.ts';
import type { FrameWriter } from './frame-writer.ts';
import { InboundQueue, type Lane } from './inbound-queue.ts';
import { isNestedDeeperThan } from '../../shared/framing/nesting-limit.ts';
import { type NoteLevel, Outbox } from './outbox.ts';
import { type NamedSession, namedSession, RequestLedger } from './request-ledger.ts';

export interface AgentStreamOptions {
  /** Bytes of the client. Read only once the SDK reads, and paused while too much waits. */
  readonly input: Readable;
  readonly writer: FrameWriter;
  readonly maxFrameBytes: number;
  /** Called once, at the end of input, when all frames before it have been handed to the SDK. Not called after stop. */
  readonly onEnd: () => void;
  /** For stderr. Texts hold nothing that the client sent. */
  readonly onNote: (level: NoteLevel, text: string) => void;
  /**
   * A message of the agent app (a response, a request, a notification) has just been queued to the writer, as it stands
   * on the wire. What is handed to the writer from here on comes behind it.
   */
  readonly onOutgoing?: (message: AnyMessage) => void;
  /** How long the end of input waits for an `initialize` that is not answered. */
  readonly endHoldMs?: number;
}

/** The SDK's `Stream`, and the way to end it. */
export interface AgentStream extends Stream {
  /** Fulfils once every request that was taken from the client has its answer in the writer. */
  allAnswered(): Promise<void>;
  /** Closes the readable, which closes the SDK's connection; takes no more input. May be called more than once. */
  stop(): void;
}

/** Deeper JSON is refused before it is parsed. */
const MAX_NESTING = 1000;
const MAX_WAITING_FRAMES = 1000;
const MAX_WAITING_CHARS = 64 * 1024 * 1024;
/** Answers that the client does not read: above this its own frames are not read either. */
const MAX_UNWRITTEN_CHARS = 1024 * 1024;
const END_HOLD_MS = 1000;

/** Opens the stream. Give it to `agent().connect()`; nothing is read before. */
export function createAgentStream(options: AgentStreamOptions): AgentStream {
  return new Connection(options);
}

class Connection implements AgentStream {
  readonly readable: ReadableStream<AnyMessage>;
  readonly writable: WritableStream<AnyMessage>;

  readonly #options: AgentStreamOptions;
  readonly #ledger = new RequestLedger();
  readonly #decoder: FrameDecoder;
  readonly #queue: InboundQueue;
  readonly #outbox: Outbox;
  #controller: ReadableStreamDefaultController<AnyMessage> | undefined;

  #reading = false;
  #paused = false;
  #ended = false;
  #stopped = false;
  #endTimer: NodeJS.Timeout | undefined;
  #initialized = false;
  #initializing: { readonly id: RequestId } | undefined;

  constructor(options: AgentStreamOptions) {
    this.#options = options;
    this.#decoder = new FrameDecoder({ maxFrameBytes: options.maxFrameBytes }, (frame) => this.#take(frame));
    this.#queue = new InboundQueue({ deliver: (message) => this.#deliver(message), onTaken: () => this.#regulate() });
    this.#outbox = new Outbox({
      writer: options.writer,
      ledger: this.#ledger,
      onNote: options.onNote,
      onOutgoing: (message) => this.#afterOutgoing(message),
      onWritten: () => this.#regulate(),
      onUnsendable: (answer) => this.#queue.push(answer, { kind: 'method', name: '' }, 0),
    });
    this.readable = new ReadableStream<AnyMessage>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#startReading(),
        cancel: () => this.stop(),
      },
      // Zero: pulled only by a waiting reader, so that no frame is queued where turns cannot keep its order.
      { highWaterMark: 0 },
    );
    this.writable = new WritableStream<AnyMessage>({ write: (message) => this.#outbox.send(message) });
  }

  allAnswered(): Promise<void> {
    return this.#ledger.allAnswered();
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    clearTimeout(this.#endTimer);
    this.#queue.stop();
    const { input } = this.#options;
    input.off('data', this.#onData).off('end', this.#onInputEnd).off('close', this.#onInputEnd);
    input.pause();
    // A paused socket may still be reading ahead, and would keep the process alive.
    if (input instanceof Socket) input.unref();
    try {
      this.#controller?.close();
    } catch {
      // The SDK has cancelled the readable itself: there is nothing left to close.
    }
  }

  #startReading(): void {
    if (this.#reading || this.#stopped) return;
    this.#reading = true;
    const { input } = this.#options;
    input.on('end', this.#onInputEnd).on('close', this.#onInputEnd).on('error', this.#onInputError);
    if (input.destroyed || input.readableEnded) this.#onInputEnd();
    else input.on('data', this.#onData);
  }

  readonly #onData = (chunk: Buffer | string): void => {
    this.#decoder.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
    this.#regulate();
  };

  readonly #onInputError = (error: Error & { code?: string }): void => {
    this.#options.onNote('warn', `Reading from the client failed (${error.code ?? error.name}); taken as the end of input.`);
    this.#onInputEnd();
  };

  readonly #onInputEnd = (): void => {
    if (this.#ended || this.#stopped) return;
    this.#ended = true;
    this.#decoder.end();
    const finish = (): void => {
      clearTimeout(this.#endTimer);
      this.#endTimer = undefined;
      this.#options.onEnd();
    };
    // Whichever comes first; an initialize that is never answered must not keep the server alive.
    let done = false;
    const once = (): void => {
      if (done || this.#stopped) return;
      done = true;
      finish();
    };
    this.#endTimer = setTimeout(once, this.#options.endHoldMs ?? END_HOLD_MS);
    this.#queue.whenDrained(once);
  };

  #take(frame: DecodedFrame): void {
    if (this.#stopped) return;
    if ('oversized' in frame) {
      const message = `Invalid request: the frame is longer than ${frame.oversized} bytes; it was skipped.`;
      this.#outbox.refuse(errorFrame(null, 'FRAME_TOO_LARGE', message));
      return;
    }
    // A byte order mark is no JSON, but some clients open with one.
    const text = frame.line.charCodeAt(0) === 0xfeff ? frame.line.slice(1) : frame.line;
    if (isNestedDeeperThan(text, MAX_NESTING)) {
      this.#outbox.refuse(errorFrame(null, 'INVALID_REQUEST', `Invalid request: nested deeper than ${MAX_NESTING} levels.`));
      return;
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      // The unfinished last line of a client that went away is nobody's mistake.
      if (!this.#ended) this.#outbox.refuse(errorFrame(null, 'PARSE_ERROR', 'Parse error'));
      return;
    }
    this.#takeMessage(value, text.length);
  }

  #takeMessage(value: unknown, size: number): void {
    const envelope = readEnvelope(value);
    switch (envelope.kind) {
      case 'reject':
        this.#outbox.refuse(envelope.answer);
        return;
      case 'ignore':
        this.#options.onNote('debug', `Ignored ${envelope.why}.`);
        return;
      case 'response': {
        const request = this.#ledger.settle(envelope.id);
        if (request === undefined) this.#options.onNote('debug', 'Ignored a response to a request that is not open.');
        else this.#queue.push(envelope.message, laneOf(request.session, ''), size);
        return;
      }
      case 'request': {
        const session = namedSession(envelope.message.params);
        if (this.#ledger.accept(envelope.id, session)) this.#queue.push(envelope.message, laneOf(session, envelope.method), size);
        else this.#outbox.refuse(errorFrame(envelope.id, 'INVALID_REQUEST', 'Invalid request: a request with this id is still open.'));
        return;
      }
      case 'notification':
        this.#queue.push(envelope.message, laneOf(namedSession(envelope.message.params), envelope.method), size);
        return;
      default:
        envelope satisfies never;
    }
  }

  /** Hands a message to the SDK; true while the frames behind it have to wait. */
  #deliver(message: AnyMessage): boolean {
    this.#controller?.enqueue(message);
    if (this.#initialized || !('method' in message) || message.method !== 'initialize' || !('id' in message)) return false;
    // Until its response is queued to the writer the SDK refuses every other request.
    this.#initializing = { id: message.id };
    return true;
  }

  #afterOutgoing(message: AnyMessage): void {
    if (this.#initializing !== undefined && !('method' in message) && message.id === this.#initializing.id) {
      this.#initialized = 'result' in message;
      this.#initializing = undefined;
      this.#queue.release();
    }
    this.#options.onOutgoing?.(message);
  }

  /** Reads on or stops reading, by what waits on both sides; with a gap between the two marks. */
  #regulate(): void {
    if (this.#stopped || !this.#reading) return;
    const fill = Math.max(
      this.#queue.length / MAX_WAITING_FRAMES,
      this.#queue.waitingSize / MAX_WAITING_CHARS,
      this.#outbox.unwritten / MAX_UNWRITTEN_CHARS,
    );
    if (!this.#paused && fill > 1) {
      this.#paused = true;
      this.#options.input.pause();
    } else if (this.#paused && fill < 0.5) {
      this.#paused = false;
      this.#options.input.resume();
    }
  }
}

/** `method` is empty for a response. Cancelling by request id and changes of state stand in order against everything. */
function laneOf(session: NamedSession, method: string): Lane {
  if (method === '$/cancel_request' || method === 'initialize' || method === 'authenticate' || method === 'logout')
    return { kind: 'alone' };
  return session === undefined ? { kind: 'method', name: method } : { kind: 'session', id: session };
}
