/**
 * A local HTTP server that answers like a streaming model, on loopback, for tests and benches.
 *
 * What it answers is a plan (`answer-plan.ts`): enqueued by a test, or carried by the request in the header `x-answer-plan` or as JSON in
 * the last user message. It records what it was asked. Control: `GET /control/stats`, `GET /control/requests`,
 * `POST /control/reset`; and `GET /v1/models`.
 */
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AnswerPlan, planForRequest } from './answer-plan.ts';
import { AnswerStream } from './answer-stream.ts';
import { TickWheel } from './tick-wheel.ts';

export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: any;
}

export interface ModelServerStats {
  readonly requests: number;
  readonly activeStreams: number;
  readonly tokensSent: number;
  readonly connections: number;
  /** Microseconds of this process, user and system together, since the last reset. */
  readonly cpuMicros: number;
  /** Answers at once, at most, refusals included. */
  readonly peakStreams: number;
  /** Answered 429 for {@link ModelServerOptions.maxStreams}. */
  readonly refused: number;
  readonly rssBytes: number;
}

export interface ModelServerOptions {
  /** A free one when left out. */
  readonly port?: number;
  /** How many requests are kept; the oldest go. `0` keeps none and skips reading them where a header plan is given. */
  readonly keepRequests?: number;
  /** Above this many answers at once a request is answered 429, as a provider's limit does. */
  readonly maxStreams?: number;
  /** What such an answer says in `Retry-After`; without it says nothing. Fractions become `retry-after-ms`. */
  readonly retryAfterSeconds?: number;
}

export class ModelServer {
  readonly requests: RecordedRequest[] = [];
  readonly #news = new EventEmitter();
  readonly #server: Server;
  readonly #wheel = new TickWheel();
  readonly #queue: AnswerPlan[] = [];
  readonly #keep: number;
  readonly #options: ModelServerOptions;
  #active = 0;
  #peak = 0;
  #refused = 0;
  #count = 0;
  #tokens = 0;
  #connections = 0;
  #cpuAtReset = process.cpuUsage();
  #released = false;

  private constructor(options: ModelServerOptions) {
    this.#keep = options.keepRequests ?? 1000;
    this.#options = options;
    this.#server = createServer({ keepAliveTimeout: 60_000, noDelay: true }, (request, response) => this.#serve(request, response));
    this.#server.on('connection', () => {
      this.#connections += 1;
    });
  }

  static async start(options: ModelServerOptions = {}): Promise<ModelServer> {
    const server = new ModelServer(options);
    server.#server.listen(options.port ?? 0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}/v1`;
  }

  get activeStreams(): number {
    return this.#active;
  }

  get stats(): ModelServerStats {
    const { user, system } = process.cpuUsage(this.#cpuAtReset);
    return {
      requests: this.#count,
      activeStreams: this.#active,
      tokensSent: this.#tokens,
      connections: this.#connections,
      cpuMicros: user + system,
      peakStreams: this.#peak,
      refused: this.#refused,
      rssBytes: process.memoryUsage.rss(),
    };
  }

  /** Fulfils once at least so many requests have been kept. */
  async asked(count: number): Promise<void> {
    while (this.requests.length < count) await once(this.#news, 'request');
  }

  /** Plans for the next requests, in order; they go before a plan that a request carries. */
  enqueue(...plans: readonly AnswerPlan[]): void {
    this.#queue.push(...plans);
  }

  /** Lets answers end that were to go on until now. */
  release(): void {
    this.#released = true;
  }

  /** Drops the connections that lie idle, as a server's own timeout would. */
  closeIdleConnections(): void {
    this.#server.closeIdleConnections();
  }

  reset(): void {
    this.requests.length = 0;
    this.#queue.length = 0;
    this.#count = 0;
    this.#tokens = 0;
    this.#connections = 0;
    this.#peak = 0;
    this.#refused = 0;
    this.#cpuAtReset = process.cpuUsage();
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
    request.on('data', (bytes: Buffer) => pieces.push(bytes));
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString('utf8');
      if (request.method === 'POST' && request.url?.split('?')[0]?.endsWith('/chat/completions')) this.#complete(request, response, text);
      else this.#control(request, response);
    });
  }

  #control(request: IncomingMessage, response: ServerResponse): void {
    const answer = (value: unknown): void => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (request.url === '/control/stats') answer(this.stats);
    else if (request.url === '/control/requests') answer(this.requests.map((entry) => entry.body));
    else if (request.url === '/control/reset') {
      this.reset();
      answer({});
    } else if (request.url === '/v1/models') answer({ object: 'list', data: [{ id: 'local-model', object: 'model', owned_by: 'test' }] });
    else response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"no such path"}}');
  }

  #complete(request: IncomingMessage, response: ServerResponse, text: string): void {
    let body: any;
    try {
      body = JSON.parse(text);
    } catch {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"the body is not JSON"}}');
      return;
    }
    this.#count += 1;
    if (this.#keep > 0) {
      this.requests.push({ path: request.url ?? '', headers: request.headers, text, body });
      if (this.requests.length > this.#keep) this.requests.shift();
      this.#news.emit('request');
    }
    const header = request.headers['x-answer-plan'];
    const isFull = this.#active >= (this.#options.maxStreams ?? Number.POSITIVE_INFINITY);
    const planned = (): AnswerPlan =>
      this.#queue.shift() ?? planForRequest(typeof header === 'string' ? header : undefined, body.messages ?? []);
    this.#answer(isFull ? this.#refusal() : planned(), response);
  }

  #refusal(): AnswerPlan {
    this.#refused += 1;
    const seconds = this.#options.retryAfterSeconds;
    const wait = Number.isInteger(seconds) ? { 'retry-after': String(seconds) } : { 'retry-after-ms': String((seconds ?? 0) * 1000) };
    const headers = seconds === undefined ? {} : wait;
    return { fault: { kind: 'status', status: 429, body: '{"error":{"message":"too many requests"}}', headers } };
  }

  #answer(plan: AnswerPlan, response: ServerResponse): void {
    const { fault } = plan;
    this.#active += 1;
    this.#peak = Math.max(this.#peak, this.#active);
    response.once('close', () => {
      this.#active -= 1;
    });
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'reset') response.socket?.resetAndDestroy();
    else if (fault?.kind === 'status') {
      response
        .writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers })
        .end(fault.body ?? '{"error":{"message":"planned"}}');
    } else {
      const countToken = (): void => void (this.#tokens += 1);
      const stream = new AnswerStream(plan, response, countToken, () => this.#released);
      stream.start(this.#wheel);
    }
  }
}
