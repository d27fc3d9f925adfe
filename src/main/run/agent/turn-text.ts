/**
 * The final text of a turn, from the pieces in which it came: what the agent said behind its last tool call. Bounded: of a longer text the
 * end is kept.
 */

const keptChars = 256 * 1024;

export class TurnText {
  #text = '';
  #cut = false;
  /** The text before the tool call that was just seen: it stands if nothing follows. */
  #before = '';

  /** A new turn begins. */
  clear(): void {
    this.#text = '';
    this.#before = '';
    this.#cut = false;
  }

  push(text: string): void {
    this.#text += text;
    if (this.#text.length > 2 * keptChars) this.#bound();
  }

  toolCall(): void {
    if (this.#text.trim() !== '') this.#before = this.text();
    this.#text = '';
    this.#cut = false;
  }

  text(): string {
    this.#bound();
    if (this.#text.trim() === '') return this.#before;
    return this.#cut ? `[…]${this.#text}` : this.#text;
  }

  #bound(): void {
    if (this.#text.length <= keptChars) return;
    this.#text = this.#text.slice(-keptChars);
    this.#cut = true;
  }
}

/** The same limit, for a text that came whole. */
export function boundText(text: string): string {
  return text.length > keptChars ? `[…]${text.slice(-keptChars)}` : text;
}
