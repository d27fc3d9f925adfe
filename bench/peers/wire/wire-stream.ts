/** Streams one answer on one wire, at its pace or as fast as the socket takes it. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Periodic, TickWheel } from '../../../test/support/tick-wheel.ts';
import type { WireFrames } from './wire-frames.ts';
import { numberedWords } from './wire-frames.ts';
import type { Order } from './wire-request.ts';

/** Bytes handed to a socket at once when there is no pace. */
const fastWriteBytes = 16 * 1024;

export class WireStream implements Periodic {
  readonly periodMs: number;
  readonly #frames: WireFrames;
  readonly #order: Order;
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #onToken: () => void;
  #sent = 0;

  /** The head of the response must not have been written. */
  constructor(frames: WireFrames, order: Order, response: ServerResponse, onToken: () => void) {
    if (response.socket === null) throw new Error('the response has no socket');
    this.periodMs = order.delayMs;
    this.#frames = frames;
    this.#order = order;
    this.#response = response;
    this.#socket = response.socket;
    this.#onToken = onToken;
  }

  start(wheel: TickWheel): void {
    writeStreamHead(this.#response);
    if (this.#frames.opening.length > 0) this.#socket.write(this.#frames.opening);
    if (this.periodMs > 0) wheel.add(this);
    else this.#rush();
  }

  /** One period: one word, or the end. */
  fire(): boolean {
    if (this.#socket.destroyed) return false;
    if (this.#sent < this.#order.tokens) {
      this.#socket.write(this.#next());
      return true;
    }
    this.#close();
    return false;
  }

  #rush(): void {
    while (!this.#socket.destroyed) {
      const pieces: Buffer[] = [];
      for (let size = 0; this.#sent < this.#order.tokens && size < fastWriteBytes; size += pieces.at(-1)!.length) pieces.push(this.#next());
      const room = pieces.length === 0 || this.#socket.write(Buffer.concat(pieces));
      if (this.#sent >= this.#order.tokens) {
        this.#close();
        return;
      }
      if (!room) {
        this.#socket.once('drain', () => this.#rush());
        return;
      }
    }
  }

  #next(): Buffer {
    const index = this.#sent;
    this.#sent += 1;
    this.#onToken();
    return this.#frames.token(index);
  }

  #close(): void {
    this.#socket.write(this.#frames.closing(numberedWords(this.#sent)));
    this.#response.end();
  }
}

export function writeStreamHead(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
}
