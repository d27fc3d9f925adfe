/**
 * Keeps a page of any session at a size that a browser takes: the beginning and the end, and in between how much is left out. Holds
 * the end until all is there.
 */
export class BoundedPieces {
  readonly #write: (text: string) => void;
  #headLeft: number;
  readonly #tailChars: number;
  readonly #tail: string[] = [];
  /** Index of the first piece of the tail that is kept. */
  #first = 0;
  #kept = 0;
  /** Pieces that were let go. */
  left = 0;

  /** @param mostChars of all pieces together; one piece more may go over it */
  constructor(mostChars: number, write: (text: string) => void) {
    this.#write = write;
    this.#headLeft = Math.ceil(mostChars / 2);
    this.#tailChars = mostChars - this.#headLeft;
  }

  add(piece: string): void {
    if (piece === '') return;
    if (this.#headLeft > 0) {
      this.#headLeft -= piece.length;
      this.#write(piece);
      return;
    }
    this.#tail.push(piece);
    this.#kept += piece.length;
    while (this.#kept > this.#tailChars && this.#first < this.#tail.length - 1) {
      this.#kept -= this.#tail[this.#first]?.length ?? 0;
      this.#tail[this.#first] = '';
      this.#first += 1;
      this.left += 1;
    }
    // Now and then, as moving them all for each one would cost their square.
    if (this.#first < 1024 || this.#first * 2 < this.#tail.length) return;
    this.#tail.splice(0, this.#first);
    this.#first = 0;
  }

  /** @param note made of how many were left out; not asked for when none were */
  end(note: (left: number) => string): void {
    if (this.left > 0) this.#write(note(this.left));
    for (const piece of this.#tail.slice(this.#first)) this.#write(piece);
  }
}
