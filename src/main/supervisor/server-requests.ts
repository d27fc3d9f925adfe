/**
 * Requests of the server to the client. Each process counts its ids from the start, so they are given ids of ours on the way
 * out, and their own again on the way back.
 */
import { idKey, type LooseFrame, member } from './frames.ts';

export class ServerRequests {
  readonly #ownIds = new Map<number, unknown>();
  readonly #outer = new Map<string, number>();
  #count = 0;

  /** The request as the client gets it. */
  outgoing(frame: LooseFrame): string {
    this.#count += 1;
    const id = this.#count;
    this.#ownIds.set(id, frame.id);
    this.#outer.set(idKey(frame.id) ?? '', id);
    return JSON.stringify({ ...frame, id });
  }

  /** The server takes a request of its own back. `undefined` when it has been answered. */
  withdrawal(frame: LooseFrame): string | undefined {
    const id = this.#outer.get(idKey(member(frame.params, 'requestId')) ?? '');
    return id === undefined ? undefined : JSON.stringify({ ...frame, params: { requestId: id } });
  }

  /** The client's answer as the server gets it; `undefined` when nobody waits for it any more. */
  incoming(frame: LooseFrame): string | undefined {
    const { id } = frame;
    if (typeof id !== 'number' || !this.#ownIds.has(id)) return undefined;
    const own = this.#ownIds.get(id);
    this.#ownIds.delete(id);
    this.#outer.delete(idKey(own) ?? '');
    return JSON.stringify({ ...frame, id: own });
  }

  /** The process that asked is gone: lines that take its questions back. */
  withdrawAll(): string[] {
    const open = [...this.#ownIds.keys()];
    this.#ownIds.clear();
    this.#outer.clear();
    return open.map((requestId) => JSON.stringify({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } }));
  }
}
