/**
 * Texts that come in pieces, several at once: what running commands write, what subagents say. Known secrets are taken out, also those
 * that come in two pieces.
 */
import type { SecretStream } from '../../shared/secret-stream.ts';
import type { SecretValues } from '../../shared/secret-values.ts';

export class CleanTexts {
  readonly #secrets: SecretValues;
  readonly #streams = new Map<string, SecretStream>();

  constructor(secrets: SecretValues) {
    this.#secrets = secrets;
  }

  /** The next piece of the text of this id; gives what can be passed on of it now. */
  take(id: string, text: string): string {
    const known = this.#streams.get(id);
    const stream = known ?? this.#secrets.stream();
    if (stream === undefined) return text;
    if (known === undefined) this.#streams.set(id, stream);
    return stream.take(text);
  }

  /** It is over; gives what still waits. */
  end(id: string): string {
    const stream = this.#streams.get(id);
    if (stream === undefined) return '';
    this.#streams.delete(id);
    return stream.end();
  }

  /** Nothing that waits is passed on any more. */
  clear(): void {
    this.#streams.clear();
  }
}
