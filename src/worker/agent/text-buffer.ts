/**
 * Text that grows by small pieces. Strings added one to another are kept by V8 as a tree with a node of some fifty bytes for each
 * token, for as long as nobody reads them; here they become flat every few kilobytes.
 */

/** Characters after which the pieces are joined. */
const blockLength = 4096;

export class TextBuffer {
  readonly #blocks: string[] = [];
  #pieces: string[] = [];
  #pending = 0;
  #length = 0;

  /** In UTF-16 units. */
  get length(): number {
    return this.#length;
  }

  append(piece: string): void {
    this.#pieces.push(piece);
    this.#pending += piece.length;
    this.#length += piece.length;
    if (this.#pending < blockLength) return;
    this.#blocks.push(this.#pieces.join(''));
    this.#pieces = [];
    this.#pending = 0;
  }

  toString(): string {
    return this.#blocks.join('') + this.#pieces.join('');
  }
}
