/**
 * The text that a child says in one run: its head and its tail, however much comes. Where the child marks its messages, the
 * last of them is kept apart: it is the answer, and what stood before it was said on the way.
 */
import { OutputCapture } from '../output-capture.ts';

const maxBytes = 1024 * 1024;

export class ChildText {
  readonly #all = new OutputCapture(maxBytes, undefined);
  /** `undefined` once text came that belongs to no message: nobody could tell then where the last one begins. */
  #last: OutputCapture | undefined = new OutputCapture(maxBytes, undefined);
  #messageId: string | undefined;
  #interrupted = false;
  #lastEnd = '\n';

  /** What is to be shown of the chunk: a new message begins a new paragraph. */
  add(text: string, messageId: string | undefined): string {
    if (text === '') return '';
    const isNew = messageId === undefined || this.#messageId === undefined ? this.#interrupted : messageId !== this.#messageId;
    const shown = isNew && this.#lastEnd !== '\n' ? `\n\n${text}` : text;
    this.#keepLast(text, messageId);
    this.#messageId = messageId;
    this.#interrupted = false;
    this.#lastEnd = shown.at(-1) ?? '\n';
    void this.#all.write(Buffer.from(shown));
    return shown;
  }

  /** Something else was done: without message ids, text that follows is another message. */
  interrupt(): void {
    this.#interrupted = true;
  }

  /** All text so far, with a mark where something is missing. */
  async all(): Promise<string> {
    return (await this.#all.finish()).text;
  }

  /** The text of the last message; all text of a child that does not mark its messages, or not all of them. */
  async lastMessage(): Promise<string> {
    return (await (this.#last ?? this.#all).finish()).text;
  }

  #keepLast(text: string, messageId: string | undefined): void {
    if (messageId === undefined) this.#last = undefined;
    else if (this.#last !== undefined && messageId !== this.#messageId) this.#last = new OutputCapture(maxBytes, undefined);
    void this.#last?.write(Buffer.from(text));
  }
}
