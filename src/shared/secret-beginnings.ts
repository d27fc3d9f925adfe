/**
 * Finds secrets in text that is still being written: whole ones, and an end that may be the beginning of one.
 *
 * One walk over each piece, however many secrets there are. A character that begins none costs one look into a table, and one that does
 * costs a second look for the character behind it; so a token costs some nanoseconds.
 */

const firstsSize = 128;
const pairsSize = 4096;
const never: readonly string[] = [];

/** What begins at a place of a text: nothing, a secret of this length, or perhaps one whose rest is still to come. */
export type Beginning = 'nothing' | 'perhaps' | number;

export class SecretBeginnings {
  /** By the first character; `1` where a secret may begin with it. */
  readonly #firsts = new Uint8Array(firstsSize);
  /** By the first two. */
  readonly #pairs = new Uint8Array(pairsSize);
  readonly #byFirst: (readonly string[])[] = Array.from({ length: firstsSize }, () => never);

  /** @param secrets the longest first, each of two characters at least */
  constructor(secrets: readonly string[]) {
    for (const secret of secrets) {
      const first = secret.charCodeAt(0);
      this.#firsts[first & (firstsSize - 1)] = 1;
      this.#pairs[pairOf(first, secret.charCodeAt(1))] = 1;
      this.#byFirst[first & (firstsSize - 1)] = [...(this.#byFirst[first & (firstsSize - 1)] ?? never), secret];
    }
  }

  /** The first place from `from` on at which a secret may begin; `-1` when there is none. */
  next(text: string, from: number): number {
    const firsts = this.#firsts;
    const last = text.length - 1;
    for (let place = from; place <= last; place += 1) {
      const first = text.charCodeAt(place);
      if (firsts[first & (firstsSize - 1)] === 0) continue;
      if (place === last || this.#pairs[pairOf(first, text.charCodeAt(place + 1))] === 1) return place;
    }
    return -1;
  }

  /** @param isEnd nothing follows any more, so only a whole secret counts */
  at(text: string, place: number, isEnd: boolean): Beginning {
    const room = text.length - place;
    for (const secret of this.#byFirst[text.charCodeAt(place) & (firstsSize - 1)] ?? never) {
      const length = Math.min(room, secret.length);
      if (!isSame(text, place, secret, length)) continue;
      if (length === secret.length) return length;
      if (!isEnd) return 'perhaps';
    }
    return 'nothing';
  }
}

function pairOf(first: number, second: number): number {
  return ((first << 5) ^ second) & (pairsSize - 1);
}

/** Without a copy: nearly every comparison ends soon. */
function isSame(text: string, place: number, secret: string, length: number): boolean {
  for (let index = 0; index < length; index += 1) {
    if (text.charCodeAt(place + index) !== secret.charCodeAt(index)) return false;
  }
  return true;
}
