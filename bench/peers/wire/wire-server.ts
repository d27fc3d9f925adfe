/**
 * The model server of the comparison, on loopback: the same words at the same pace on three wires. `GET /control/stats` says what it was
 * asked.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TickWheel } from '../../../test/support/tick-wheel.ts';
import { framesOf } from './wire-frames.ts';
import { readRequest, type WireRequest } from './wire-request.ts';
import { WireStream, writeStreamHead } from './wire-stream.ts';

export interface WireStats {
  /** Requests with an order. */
  readonly ordered: number;
  /** Requests that an agent made for itself, answered `ok`. */
  readonly own: number;
  readonly activeStreams: number;
  readonly tokensSent: number;
  /** Of the bodies of all requests: what each agent sends beside the prompt. */
  readonly bytesRead: number;
}

/** What a request without an order is answered. */
export const ownAnswer = 'ok';

export class WireServer {
  readonly #server: Server;
  readonly #wheel = new TickWheel();
  #ordered = 0;
  #own = 0;
  #active = 0;
  #tokens = 0;
  #bytes = 0;

  private constructor() {
    this.#server = createServer({ keepAliveTimeout: 60_000, noDelay: true }, (request, response) => this.#serve(request, response));
  }

  static async start(): Promise<WireServer> {
    const server = new WireServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** Without a path. */
  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get stats(): WireStats {
    return { ordered: this.#ordered, own: this.#own, activeStreams: this.#active, tokensSent: this.#tokens, bytesRead: this.#bytes };
  }

  async close(): Promise<void> {
    this.#wheel.close();
    this.#server.closeAllConnections();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const pieces: Buffer[] = [];
    request.on('data', (bytes: Buffer) => {
      this.#bytes += bytes.length;
      pieces.push(bytes);
    });
    request.on('end', () => {
      const path = request.url ?? '';
      const text = Buffer.concat(pieces).toString('utf8');
      try {
        const asked = request.method === 'POST' ? readRequest(path, JSON.parse(text === '' ? '{}' : text)) : undefined;
        if (asked === undefined) this.#answerOther(path, response);
        else this.#answer(asked, response);
      } catch {
        json(response, '{"error":{"message":"the body is not JSON"}}', 400);
      }
    });
  }

  #answerOther(path: string, response: ServerResponse): void {
    if (path === '/control/stats') json(response, JSON.stringify(this.stats));
    else if (path.includes(':countTokens')) json(response, '{"totalTokens":100}');
    else if (path.split('?')[0]?.endsWith('/models')) json(response, '{"object":"list","data":[{"id":"local-model","object":"model"}]}');
    else json(response, '{"error":{"message":"no such path"}}', 404);
  }

  #answer({ wire, order, whole }: WireRequest, response: ServerResponse): void {
    const frames = framesOf[wire];
    if (order === undefined) this.#own += 1;
    else this.#ordered += 1;
    if (whole) {
      json(response, frames.whole(ownAnswer));
      return;
    }
    this.#active += 1;
    response.once('close', () => {
      this.#active -= 1;
    });
    if (order === undefined) {
      writeStreamHead(response);
      response.socket?.write(Buffer.concat([frames.opening, frames.delta(ownAnswer), frames.closing([ownAnswer])]));
      response.end();
      return;
    }
    const stream = new WireStream(frames, order, response, () => {
      this.#tokens += 1;
    });
    stream.start(this.#wheel);
  }
}

function json(response: ServerResponse, body: string, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
