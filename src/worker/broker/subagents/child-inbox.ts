/**
 * What a child writes to its stdout, sorted: session updates for us, requests and answers for the SDK, the rest dropped.
 *
 * Stands before the SDK for three reasons: the SDK answers every line that is no JSON with an error frame into the child;
 * it drops updates whose kind its schema does not know; and it bounds nothing. Trusts nothing that comes.
 */
import type { AnyMessage, AnyNotification, AnyRequest, AnyResponse } from '@agentclientprotocol/sdk';
import { type DecodedFrame, FrameDecoder } from '../../../shared/framing/frame-decoder.ts';
import { ByteAllowance } from './byte-allowance.ts';

const maxLineBytes = 32 * 1024 * 1024;
const keptNoiseChars = 4096;
/** What a line costs beside its bytes, in bytes: to read a short one takes time, too, and more when it is no message. */
const lineCost = 256;
const noiseCost = 1024;
/** Requests of the child that wait for an answer; more are not read before some are answered. */
const maxOpenRequests = 64;

export interface InboxSinks {
  /** The params of a `session/update`, whatever is in them. */
  readonly onUpdate: (params: unknown) => void;
  /** For the SDK: requests, answers to open requests of ours, cancels of requests. */
  readonly onMessage: (message: AnyMessage) => void;
  /** The child broke the protocol in a way that hurts nobody now: it must not be used for another run. */
  readonly onViolation: (what: string) => void;
  /** Nothing more of this child is read. */
  readonly onFatal: (reason: string) => void;
}

type Id = string | number | null;

export class ChildInbox {
  readonly #sinks: InboxSinks;
  readonly #decoder = new FrameDecoder({ maxFrameBytes: maxLineBytes }, (frame) => this.#take(frame));
  readonly #allowance: ByteAllowance;
  /** Ids of our requests that have no answer yet. */
  readonly #asked = new Set<Id>();
  /** Ids of the child's requests that have no answer yet. */
  readonly #askedOfUs = new Set<Id>();
  #roomWaiters: (() => void)[] = [];
  #dead = false;
  #noise = '';

  constructor(sinks: InboxSinks, allowance = new ByteAllowance()) {
    this.#sinks = sinks;
    this.#allowance = allowance;
  }

  /** The last line that was no message: often the reason why a child ended. */
  get noise(): string {
    return this.#noise;
  }

  /** True when neither side waits for an answer of the other. */
  get isQuiet(): boolean {
    return this.#asked.size === 0 && this.#askedOfUs.size === 0;
  }

  /** Takes the next bytes. A promise means: give no more until it fulfils. */
  push(chunk: Buffer): Promise<void> | undefined {
    if (this.#dead) return undefined;
    this.#spend(chunk.length);
    this.#decoder.push(chunk);
    if (this.#askedOfUs.size < maxOpenRequests) return undefined;
    return new Promise((resolve) => this.#roomWaiters.push(resolve));
  }

  /** The stream has ended; a last line without its newline still counts. */
  end(): void {
    if (!this.#dead) this.#decoder.end();
  }

  /** To be told of every message that goes to the child, before it goes. */
  noteSent(message: AnyMessage): void {
    if (!('id' in message)) return;
    if ('method' in message) this.#asked.add(message.id);
    else this.#noteAnswered(message.id);
  }

  #noteAnswered(id: Id): void {
    this.#askedOfUs.delete(id);
    if (this.#askedOfUs.size >= maxOpenRequests) return;
    for (const wake of this.#roomWaiters.splice(0)) wake();
  }

  #spend(bytes: number): void {
    if (!this.#allowance.take(bytes)) this.#fail('it floods its output');
  }

  #fail(reason: string): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#sinks.onFatal(reason);
  }

  #take(frame: DecodedFrame): void {
    if (this.#dead) return;
    if ('line' in frame) this.#takeLine(frame.line);
    else this.#fail(`it wrote a line of more than ${maxLineBytes / 1024 / 1024} MB`);
  }

  #takeLine(line: string): void {
    this.#spend(lineCost);
    const value = parseObject(line);
    if (value === undefined || value['jsonrpc'] !== '2.0') {
      this.#spend(noiseCost);
      this.#noise = line.slice(0, keptNoiseChars);
    } else if (Object.hasOwn(value, 'method')) {
      this.#takeCall(value);
    } else if (isId(value['id']) && this.#asked.delete(value['id'])) {
      this.#sinks.onMessage(value as unknown as AnyResponse);
    } else {
      this.#sinks.onViolation('an answer to nothing that was asked');
    }
  }

  #takeCall(value: Record<string, unknown>): void {
    const { id, method, params } = value;
    if (!Object.hasOwn(value, 'id')) {
      if (method === 'session/update') this.#sinks.onUpdate(params);
      else if (method === '$/cancel_request') this.#sinks.onMessage(value as unknown as AnyNotification);
    } else if (typeof method !== 'string' || !isId(id) || this.#askedOfUs.has(id)) {
      this.#sinks.onViolation('a request that cannot be answered');
    } else {
      this.#askedOfUs.add(id);
      this.#sinks.onMessage(value as unknown as AnyRequest);
    }
  }
}

function parseObject(line: string): Record<string, unknown> | undefined {
  // A failed parse costs far more than this look.
  if (!/^\s*\{/.test(line)) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Not JSON: noise, which many programs print before they come to the point.
    return undefined;
  }
}

function isId(id: unknown): id is Id {
  return id === null || typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));
}
