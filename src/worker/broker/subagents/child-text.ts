/**
 * The text that a child says in one run: its head and its tail, however much comes.
 */
import { OutputCapture } from '../output-capture.ts';

const maxBytes = 1024 * 1024;

export class ChildText {
  readonly #capture = new OutputCapture(maxBytes, undefined);
  #messageId: string | undefined;
  #interrupted = false;
  #lastEnd = '\n';

  /** What is to be shown of the chunk: a new message begins a new paragraph. */
  add(text: string, messageId: string | undefined): string {
    if (text === '') return '';
    const isNew = messageId === undefined || this.#messageId === undefined ? this.#interrupted : messageId !== this.#messageId;
    const shown = isNew && this.#lastEnd !== '\n' ? `\n\n${text}` : text;
    this.#messageId = messageId;
    this.#interrupted = false;
    this.#lastEnd = shown.at(-1) ?? '\n';
    void this.#capture.write(Buffer.from(shown));
    return shown;
  }

  /** Something else was done: without message ids, text that follows is another message. */
  interrupt(): void {
    this.#interrupted = true;
  }

  /** The text so far, with a mark where something is missing. */
  async finish(): Promise<string> {
    return (await this.#capture.finish()).text;
  }
}
