/**
 * A shortcut for the commonest event of a stream: a chunk that differs from the one before in nothing but one short text.
 *
 * Parsing such a chunk costs more than everything else on a token's way through the adapter. So the bytes around the text are remembered,
 * and while they stay the same only the text is read. The result is exactly that of a full parse: the place was proven once, by
 * parsing a chunk with another text in it, and a text that is not plain is left to the parser.
 */

/** What a chunk does when it does nothing but add one piece of text. */
export interface SoleText {
  readonly type: 'text' | 'reasoning';
  readonly text: string;
}

const probe = '\u0394probe';
/** V8 copies slices up to this length; a longer one would keep the whole socket piece alive. */
const maxChars = 12;
/** Chunks learnt in a row without a hit before this stream is taken as one whose chunks all differ. */
const patience = 4;
/** A text may occur elsewhere in its chunk, for example in the id. */
const maxPlaces = 4;

function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

export class DeltaTemplate {
  readonly #read: (data: string) => SoleText | undefined;
  #prefix = '';
  #suffix = '';
  #type: SoleText['type'] = 'text';
  #credit = patience;

  /** @param read the full parse; `undefined` when the chunk does anything else, never a throw */
  constructor(read: (data: string) => SoleText | undefined) {
    this.#read = read;
  }

  /** The kind of the text that {@link match} finds. */
  get type(): SoleText['type'] {
    return this.#type;
  }

  /** The text of a chunk that fits, or `undefined`: then it must be parsed. */
  match(data: string): string | undefined {
    const start = this.#prefix.length;
    const length = data.length - start - this.#suffix.length;
    if (start === 0 || length < 1 || length > maxChars || !data.endsWith(this.#suffix) || data.slice(0, start) !== this.#prefix)
      return undefined;
    const text = data.slice(start, start + length);
    if (!isPlain(text)) return undefined;
    this.#credit = patience;
    return text;
  }

  /** Remembers the shape of a chunk that was parsed and did nothing but add `sole`. */
  learn(data: string, sole: SoleText): void {
    if (this.#credit === 0 || !isPlain(sole.text)) return;
    this.#credit -= 1;
    const literal = `"${sole.text}"`;
    let at = data.indexOf(literal);
    for (let place = 0; at >= 0 && place < maxPlaces; place += 1, at = data.indexOf(literal, at + 1)) {
      const prefix = data.slice(0, at + 1);
      const suffix = data.slice(at + 1 + sole.text.length);
      const found = this.#read(prefix + probe + suffix);
      if (found?.text !== probe || found.type !== sole.type) continue;
      // Copies: a slice would keep its socket piece alive, and compares slower.
      this.#prefix = Buffer.from(prefix).toString();
      this.#suffix = Buffer.from(suffix).toString();
      this.#type = sole.type;
      return;
    }
  }
}
