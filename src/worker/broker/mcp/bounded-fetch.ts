/**
 * `fetch` for the SDK's HTTP transports, with an end to what a server can send: no message above the limit, no flood.
 *
 * The SDK reads bodies whole and event streams without a bound. Redirects are its own business: it follows none to
 * another origin.
 */
import { ByteAllowance } from '../subagents/byte-allowance.ts';
import { maxMessageBytes } from './message-limits.ts';

const LF = 0x0a;
const CR = 0x0d;

/** `onFlood` is told once why the server is to be given up; the body that broke the bound ends with an error. */
export function boundedFetch(onFlood: (reason: string) => void): (url: string | URL, init?: RequestInit) => Promise<Response> {
  const allowance = new ByteAllowance();
  return async (url, init) => {
    const response = await fetch(url, init);
    const { body } = response;
    if (body === null) return response;
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    const bounded = body.pipeThrough(new MessageBound(isStream, allowance, onFlood).transform);
    const copy = new Response(bounded, { status: response.status, statusText: response.statusText, headers: response.headers });
    // The SDK resolves redirects against it.
    Object.defineProperty(copy, 'url', { value: response.url });
    return copy;
  };
}

/** Counts the bytes of the message that is under way: of the whole body, or of the event. */
class MessageBound {
  readonly transform: TransformStream<Uint8Array, Uint8Array>;
  #bytes = 0;
  #lineIsEmpty = true;

  constructor(isStream: boolean, allowance: ByteAllowance, onFlood: (reason: string) => void) {
    const refuse = (reason: string): never => {
      onFlood(reason);
      throw new Error(reason);
    };
    this.transform = new TransformStream({
      transform: (chunk, out) => {
        if (!allowance.take(chunk.length)) refuse('it floods its output');
        this.#count(chunk, isStream);
        if (this.#bytes > maxMessageBytes) refuse(`it sent a message of more than ${maxMessageBytes / 1024 / 1024} MB`);
        out.enqueue(chunk);
      },
    });
  }

  #count(chunk: Uint8Array, isStream: boolean): void {
    if (!isStream) {
      this.#bytes += chunk.length;
      return;
    }
    // An empty line ends an event. Line by line: `indexOf` is far quicker than a look at every byte.
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(LF, start);
      const end = found === -1 ? chunk.length : found;
      const hasText = end - start > 1 || (end - start === 1 && chunk[start] !== CR);
      if (hasText) this.#lineIsEmpty = false;
      this.#bytes += end - start + 1;
      if (found === -1) return;
      if (this.#lineIsEmpty) this.#bytes = 0;
      this.#lineIsEmpty = true;
      start = end + 1;
    }
  }
}
