/** What the supervisor itself asks the server. The client hears of none of it. */
import type { LooseFrame } from './frames.ts';

const privatePrefix = 'dsh-acp-supervisor/';

export class OwnRequests {
  readonly #open = new Map<string, (response: LooseFrame) => void>();
  readonly #prefix: string;
  #count = 0;

  /** @param nonce part of each id, so that no client's id is one of ours */
  constructor(nonce: string) {
    this.#prefix = `${privatePrefix}${nonce}/`;
  }

  /**
   * The line to send.
   *
   * @param params as JSON
   */
  line(method: string, params: string, onResponse: (response: LooseFrame) => void): string {
    this.#count += 1;
    const id = `${this.#prefix}${this.#count}`;
    this.#open.set(id, onResponse);
    return `{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}`;
  }

  /** Takes a response that is ours; says whether it was. */
  take(response: LooseFrame): boolean {
    const { id } = response;
    const onResponse = typeof id === 'string' ? this.#open.get(id) : undefined;
    if (onResponse === undefined) return false;
    this.#open.delete(id as string);
    onResponse(response);
    return true;
  }

  /** The process is gone: nothing that it was asked is answered. */
  clear(): void {
    this.#open.clear();
  }
}
