/**
 * Requests of the server to the client. Each process counts its ids from the start, so they are given ids of ours on the way
 * out, and their own again on the way back.
 */
import { idKey, type LooseFrame, member } from './frames.ts';

/** Questions that were taken back and not answered yet: a client that never answers those would have them kept for ever. */
const mostLate = 256;

export class ServerRequests {
  /** Of those that are open, and of the last ones that were taken back. */
  readonly #ownIds = new Map<number, unknown>();
  readonly #late = new Set<number>();
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
    const own = idKey(member(frame.params, 'requestId')) ?? '';
    const id = this.#outer.get(own);
    if (id === undefined) return undefined;
    this.#outer.delete(own);
    this.#late.add(id);
    this.#forgetOldest();
    return JSON.stringify({ ...frame, params: { requestId: id } });
  }

  /** The client's answer as the server gets it; `undefined` when nobody waits for it any more. */
  incoming(frame: LooseFrame): string | undefined {
    const { id } = frame;
    if (typeof id !== 'number' || !this.#ownIds.has(id)) return undefined;
    const own = this.#ownIds.get(id);
    this.#ownIds.delete(id);
    // A process may use the id of a question that was taken back once more.
    if (!this.#late.delete(id)) this.#outer.delete(idKey(own) ?? '');
    return JSON.stringify({ ...frame, id: own });
  }

  /** The process that asked is gone: lines that take its questions back. */
  withdrawAll(): string[] {
    const open = [...this.#outer.values()];
    this.#ownIds.clear();
    this.#late.clear();
    this.#outer.clear();
    return open.map((requestId) => JSON.stringify({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } }));
  }

  #forgetOldest(): void {
    if (this.#late.size <= mostLate) return;
    for (const oldest of this.#late) {
      this.#late.delete(oldest);
      this.#ownIds.delete(oldest);
      break;
    }
  }
}
