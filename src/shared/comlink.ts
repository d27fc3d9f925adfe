/**
 * Comlink, as every thread of this program uses it.
 *
 * Stands between `comlink` 4.4.2 and its callers for three reasons: the package has no `exports`, so it comes in as UMD
 * under Node and as ESM under a bundler; it drops an error's `code` and `data`; and a call whose peer has died never
 * settles. Must stay free of anything that belongs to one side only.
 */
import type { MessagePort } from 'node:worker_threads';
import * as namespace from 'comlink';
import { fromWireError, ServerError, toWireError, type WireError } from './errors.ts';

export type { Remote } from 'comlink';

type Comlink = typeof namespace;

// Indirect, since a bundler that resolves the ESM file would warn about a default export that is not there.
const { default: umd } = namespace as unknown as { readonly default?: Comlink };
const comlink: Comlink = umd ?? namespace;

export const expose: Comlink['expose'] = comlink.expose;
export const wrap: Comlink['wrap'] = comlink.wrap;
export const transfer: Comlink['transfer'] = comlink.transfer;
export const releaseProxy: Comlink['releaseProxy'] = comlink.releaseProxy;

const plainThrow = comlink.transferHandlers.get('throw');
if (plainThrow === undefined)
  throw new Error('comlink has no handler named "throw": its version is not the one this program was written for');

/** Everything thrown arrives as a {@link ServerError}: those of the catalogue whole, the rest as INTERNAL. */
comlink.transferHandlers.set('throw', {
  canHandle: (value): value is { value: unknown } => plainThrow.canHandle(value),
  serialize: (thrown: { value: unknown }): [WireError, []] => [toWireError(thrown.value), []],
  deserialize: (wire: WireError): never => {
    throw fromWireError(wire);
  },
});

/** What comlink posts: a request has one of these types, an answer has not. */
interface ComlinkMessage {
  readonly id?: string;
  readonly type?: string;
}
const requestTypes: ReadonlySet<string> = new Set(['GET', 'SET', 'APPLY', 'CONSTRUCT', 'ENDPOINT', 'RELEASE']);

type Listener = (event: { readonly data: unknown; readonly origin: string }) => void;

/**
 * A Node port as a comlink endpoint.
 *
 * When the port closes (the peer closed it, or its thread ended) every open call rejects with THREAD_LOST, and so does
 * every later one. Releasing the proxy closes the port. One endpoint per port and side.
 */
export function portEndpoint(port: MessagePort): PortEndpoint {
  return new PortEndpoint(port);
}

export class PortEndpoint {
  readonly #port: MessagePort;
  readonly #listeners = new Set<Listener>();
  readonly #open = new Map<string, string>();
  #closed = false;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('close', () => {
      this.#closed = true;
      for (const id of this.#open.keys()) this.#answerLost(id);
    });
  }

  addEventListener(_type: 'message', listener: Listener): void {
    if (this.#listeners.size === 0) this.#port.on('message', this.#receive);
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'message', listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#port.off('message', this.#receive);
  }

  postMessage(message: ComlinkMessage, transferred: Parameters<MessagePort['postMessage']>[1] = []): void {
    const { id, type } = message;
    if (id !== undefined && type !== undefined && requestTypes.has(type)) {
      this.#open.set(id, type);
      // In a microtask: comlink has to see its own call return before the answer comes.
      if (this.#closed) queueMicrotask(() => this.#answerLost(id));
    }
    this.#port.postMessage(message, transferred);
  }

  start(): void {
    this.#port.start();
  }

  readonly #receive = (data: ComlinkMessage): void => {
    const released = data.id !== undefined && this.#open.get(data.id) === 'RELEASE';
    if (data.id !== undefined) this.#open.delete(data.id);
    this.#dispatch(data);
    if (released) this.#port.close();
  };

  #dispatch(data: unknown): void {
    for (const listener of this.#listeners) listener({ data, origin: '' });
  }

  #answerLost(id: string): void {
    const type = this.#open.get(id);
    if (type === undefined) return;
    this.#open.delete(id);
    // A release has nobody waiting for it: rejecting it would only be an unhandled rejection.
    if (type === 'RELEASE') return;
    const value = toWireError(new ServerError('THREAD_LOST', 'The thread that was asked ended before it answered.'));
    this.#dispatch({ id, type: 'HANDLER', name: 'throw', value });
  }
}
