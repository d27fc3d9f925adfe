/**
 * One POST whose answer is a server-sent event stream: sockets, timers, backpressure and abort. Knows nothing of what the events say.
 *
 * Every way out goes through `#settle`, once: a failure destroys the socket, a success hands it back to the pool.
 */
import { type ClientRequest, type IncomingMessage, type RequestOptions, request as plainRequest } from 'node:http';
import type { TakeResult } from './chat-translator.ts';
import { ModelFailure, type StreamOptions } from './model-adapter.ts';
import { agentFor, guardedLookup, type ModelEndpoint, secureHttp } from './model-endpoint.ts';
import { failureForStatus } from './model-errors.ts';
import { SilenceTimer } from './silence-timer.ts';
import { SseDecoder, type SseLimits } from './sse-decoder.ts';
import { transportFailure } from './transport-failure.ts';

const maxErrorBodyBytes = 64 * 1024;
const errorBodyTimeoutMs = 2_000;
const drainTimeoutMs = 1_000;

export interface SseExchangeOptions extends StreamOptions {
  readonly endpoint: ModelEndpoint;
  /** One behind the other. Bytes, since a long string costs the request several copies. */
  readonly body: readonly Buffer[];
  readonly apiKey: string | undefined;
  /** `0` waits for ever. */
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly limits: SseLimits;
  readonly take: (data: string) => TakeResult;
}

export class SseExchange {
  readonly #options: SseExchangeOptions;
  readonly #silence: SilenceTimer;
  readonly #decoder: SseDecoder;
  readonly #resolve: () => void;
  readonly #reject: (reason: unknown) => void;
  readonly #onAbort = (): void => this.#fail(aborted());
  #request: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #settled = false;
  #progress = false;
  #done = false;

  private constructor(options: SseExchangeOptions, resolve: () => void, reject: (reason: unknown) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#silence = new SilenceTimer(options.firstByteTimeoutMs, options.idleTimeoutMs, (failure) => this.#fail(failure));
    this.#decoder = new SseDecoder((data) => this.#takeEvent(data), options.limits);
  }

  /**
   * Runs the exchange. Fulfils when `take` has said `done` or the body has ended cleanly; whether that was an answer is for the
   * caller to judge.
   *
   * @throws ModelFailure ABORTED, TIMEOUT, TRANSPORT, STREAM_CLOSED, MALFORMED_RESPONSE or the code of an HTTP status;
   *   and whatever `take` throws
   */
  static run(options: SseExchangeOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      if (options.signal.aborted) {
        reject(aborted());
        return;
      }
      const exchange = new SseExchange(options, resolve, reject);
      options.signal.addEventListener('abort', exchange.#onAbort, { once: true });
      exchange.#send(true);
    });
  }

  #send(fromPool: boolean): void {
    const { endpoint, apiKey, body } = this.#options;
    const requestOptions: RequestOptions = {
      method: 'POST',
      host: endpoint.hostname,
      port: endpoint.port,
      path: endpoint.path,
      agent: fromPool ? agentFor(endpoint) : false,
      // Else node looks for one in the headers, at each request.
      ...(endpoint.secure ? {} : { servername: '' }),
      lookup: guardedLookup,
      // As a list node takes them as they are, where it would check and store each member of an object.
      headers: Object.entries({
        host: endpoint.authority,
        accept: 'text/event-stream',
        'accept-encoding': 'identity',
        'content-type': 'application/json',
        'content-length': String(body.reduce((sum, piece) => sum + piece.length, 0)),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      }).flat(),
    };
    const request = endpoint.secure ? secureHttp().request(requestOptions) : plainRequest(requestOptions);
    this.#request = request;
    request.on('response', (response) => this.#onResponse(response));
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#settled || this.#request !== request) return;
      // A pooled connection that the server closed while it lay idle: the request never began, so it is sent again, on a new one.
      if (fromPool && request.reusedSocket && this.#response === undefined && isStale(error)) this.#send(false);
      else this.#fail(transportFailure(error, endpoint.label, this.#response !== undefined));
    });
    // A socket can end without an error and without an answer, as after an upgrade that nobody asked for.
    request.on('close', () => {
      if (this.#settled) return;
      if (this.#request === request && this.#response === undefined) this.#fail(neverAnswered(endpoint.label));
    });
    request.cork();
    for (const piece of body) request.write(piece);
    request.end();
  }

  #onResponse(response: IncomingMessage): void {
    if (this.#settled) {
      response.destroy();
      return;
    }
    this.#response = response;
    this.#silence.heard();
    const status = response.statusCode ?? 0;
    const type = response.headers['content-type'] ?? '';
    const streams = status === 200 && !/^(application\/json|text\/html)\b/i.test(type);
    response.on('error', (error: NodeJS.ErrnoException) => this.#fail(transportFailure(error, this.#options.endpoint.label, true)));
    response.on('close', () => {
      // An error costs its stack: none is made for the close of an answer that is complete.
      if (!this.#settled) this.#fail(closedEarly());
    });
    if (!streams) this.#readRefusal(response, status);
    else {
      response.on('data', (bytes: Buffer) => this.#onBytes(bytes));
      response.on('end', () => this.#settle(undefined));
    }
  }

  #onBytes(bytes: Buffer): void {
    if (this.#settled) return;
    this.#progress = false;
    try {
      this.#decoder.feed(bytes);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#done) this.#settle(undefined);
    if (this.#settled) return;
    if (this.#progress) this.#silence.progressed();
    else this.#silence.heard();
    const room = this.#options.whenWritable();
    if (room !== undefined) this.#pauseUntil(room);
  }

  #takeEvent(data: string): void {
    // The sink may have aborted the turn: what is left of this piece is not shown any more.
    if (this.#settled || this.#done) return;
    const result = this.#options.take(data);
    if (result === 'done') this.#done = true;
    else if (result === 'progress') this.#progress = true;
  }

  /** The reader's slowness is not the model's silence, so no timer runs meanwhile. */
  #pauseUntil(room: Promise<void>): void {
    this.#response?.pause();
    this.#silence.stop();
    const resume = (): void => {
      if (this.#settled) return;
      this.#silence.restart();
      this.#response?.resume();
    };
    room.then(resume, (error: unknown) => this.#fail(error));
  }

  /** Reads what an answer that is no stream says, up to a cap, and fails with it. */
  #readRefusal(response: IncomingMessage, status: number): void {
    const pieces: Buffer[] = [];
    let size = 0;
    let timer: NodeJS.Timeout | undefined;
    const report = (): void => {
      clearTimeout(timer);
      if (this.#settled) return;
      const body = Buffer.concat(pieces).subarray(0, maxErrorBodyBytes).toString('utf8');
      this.#fail(refusalOf({ status, headers: response.headers, body }, this.#options));
    };
    // A server may name the fault and then keep the body open.
    timer = setTimeout(report, errorBodyTimeoutMs);
    response.removeAllListeners('close').removeAllListeners('error');
    response.on('data', (bytes: Buffer) => {
      pieces.push(bytes);
      size += bytes.length;
      if (size >= maxErrorBodyBytes) report();
    });
    response.on('end', report).on('close', report).on('error', report);
  }

  #fail(error: unknown): void {
    if (this.#settled) return;
    this.#settle({ error });
  }

  #settle(failure: { readonly error: unknown } | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#silence.stop();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    if (failure === undefined) {
      this.#returnSocket();
      this.#resolve();
    } else {
      this.#request?.destroy();
      this.#reject(failure.error);
    }
  }

  /** Reads the end of the body, so that the connection goes back to the pool; a body that does not end is cut. */
  #returnSocket(): void {
    const response = this.#response;
    if (response === undefined || response.complete) return;
    const timer = setTimeout(() => response.destroy(), drainTimeoutMs);
    timer.unref();
    response.once('close', () => clearTimeout(timer));
    response.resume();
  }
}

function refusalOf(
  answer: { readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: string },
  options: SseExchangeOptions,
): ModelFailure {
  const { status } = answer;
  if (status >= 300 && status < 400) {
    return new ModelFailure(
      'INVALID_REQUEST',
      `The model server at ${options.endpoint.label} answered with a redirect (HTTP ${status}), which is not followed since the key would go with it. Set base_url to the final address.`,
      { status },
    );
  }
  const failure = failureForStatus(answer, options.apiKey, Date.now());
  if (status < 200 || status > 299) return failure;
  return new ModelFailure(
    'MALFORMED_RESPONSE',
    `The model server at ${options.endpoint.label} answered HTTP ${status} without a stream. Check base_url: it must serve chat/completions with "stream": true.`,
    { status },
  );
}

function isStale(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}

function aborted(): ModelFailure {
  return new ModelFailure('ABORTED', 'The model call was cancelled.');
}

function neverAnswered(label: string): ModelFailure {
  return new ModelFailure('TRANSPORT', `The model server at ${label} closed the connection without an answer.`);
}

function closedEarly(): ModelFailure {
  return new ModelFailure('STREAM_CLOSED', 'The connection to the model server broke before the answer was complete.');
}
