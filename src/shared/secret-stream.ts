/**
 * Takes secrets out of a text that comes in pieces, also where a secret is cut between two of them.
 *
 * What may be the beginning of a secret waits for what follows it, but for its first two characters: nearly every token ends with what
 * could begin one, and a word must not lose its last letter for that. So all but these two are never passed on.
 */
import type { SecretBeginnings } from './secret-beginnings.ts';
import { secretMark } from './secret-mark.ts';

/** How much of what may be a secret is passed on at once. */
const passedAtOnce = 2;

export class SecretStream {
  readonly #beginnings: SecretBeginnings;
  /** The end of what came, which may be the beginning of a secret. */
  #open = '';
  /** How much of {@link #open} was passed on. */
  #passed = 0;

  constructor(beginnings: SecretBeginnings) {
    this.#beginnings = beginnings;
  }

  /** Takes the next piece in; gives what can be passed on now, which may be nothing. */
  take(piece: string): string {
    if (this.#open !== '') return this.#scan(this.#open + piece, false);
    return this.#beginnings.next(piece, 0) === -1 ? piece : this.#scan(piece, false);
  }

  /** The text is over: gives what still waits. */
  end(): string {
    return this.#open === '' ? '' : this.#scan(this.#open, true);
  }

  #scan(text: string, isEnd: boolean): string {
    const beginnings = this.#beginnings;
    let shown = this.#passed;
    let out = '';
    for (let place = beginnings.next(text, 0); place !== -1; ) {
      const begins = beginnings.at(text, place, isEnd);
      if (begins === 'perhaps') {
        const until = Math.max(shown, Math.min(place + passedAtOnce, text.length));
        this.#open = text.slice(place);
        this.#passed = until - place;
        return out + text.slice(shown, until);
      }
      if (begins !== 'nothing') {
        out += text.slice(shown, Math.max(shown, place)) + secretMark;
        shown = place + begins;
      }
      place = beginnings.next(text, begins === 'nothing' ? place + 1 : shown);
    }
    this.#open = '';
    this.#passed = 0;
    // Most pieces are passed on as they came, and without a copy.
    return shown === 0 ? text : out + text.slice(shown);
  }
}
