/**
 * Bytes of a server-sent event stream → the data of its events, bounded. Splits may fall anywhere, also inside a character.
 */
import { StringDecoder } from 'node:string_decoder';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { ModelFailure } from './model-adapter.ts';

export interface SseLimits {
  /** Bytes of one whole stream. */
  readonly maxStreamBytes: number;
  /** Characters of one event. */
  readonly maxEventChars: number;
}

export const defaultSseLimits: SseLimits = { maxStreamBytes: 64 * 1024 * 1024, maxEventChars: 4 * 1024 * 1024 };

export class SseDecoder {
  readonly #decoder = new StringDecoder('utf8');
  readonly #parser: EventSourceParser;
  readonly #limits: SseLimits;
  #bytes = 0;
  /** Some text has come. */
  #begun = false;
  #overflow = false;

  /** @param onData called synchronously from {@link feed}; what it throws, `feed` throws */
  constructor(onData: (data: string) => void, limits: SseLimits = defaultSseLimits) {
    this.#limits = limits;
    this.#parser = createParser({
      onEvent: (event) => {
        if (event.data.length > limits.maxEventChars) throw this.#tooLarge();
        onData(event.data);
      },
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') this.#overflow = true;
      },
      maxBufferSize: limits.maxEventChars,
    });
  }

  /** @throws ModelFailure MALFORMED_RESPONSE when a limit is passed. After a throw the decoder must not be used. */
  feed(bytes: Buffer): void {
    this.#bytes += bytes.length;
    if (this.#bytes > this.#limits.maxStreamBytes) {
      throw new ModelFailure('MALFORMED_RESPONSE', `The model server sent more than ${this.#limits.maxStreamBytes} bytes in one answer.`);
    }
    let text = this.#decoder.write(bytes);
    // The mark itself may come in pieces, which give no text before the last one.
    if (!this.#begun && text !== '') {
      this.#begun = true;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    this.#parser.feed(text);
    if (this.#overflow) throw this.#tooLarge();
  }

  #tooLarge(): ModelFailure {
    return new ModelFailure('MALFORMED_RESPONSE', `The model server sent an event of more than ${this.#limits.maxEventChars} characters.`);
  }
}
