/**
 * Streamed text of one session on its way to log and client: known secrets are taken out of it, also those that the model's server cut
 * between two deltas. One filter for both, so that a load shows what was shown live.
 */
import type { EventData, EventInput } from '../../shared/events.ts';
import type { SecretStream } from '../../shared/secret-stream.ts';
import type { SecretValues } from '../../shared/secret-values.ts';

type Chunk = EventData['assistant/chunk'];

/** Text and thoughts of one answer come interleaved, each a message of its own. */
interface OpenMessage {
  readonly stream: SecretStream;
  /** The last delta; what is held back belongs to its message. */
  last: Chunk | undefined;
}

export class CleanChunks {
  readonly #pass: (chunk: Chunk) => void;
  readonly #open: Readonly<Record<Chunk['kind'], OpenMessage>> | undefined;

  /** @param pass takes what can be shown; what it throws goes to whoever calls */
  constructor(secrets: SecretValues, pass: (chunk: Chunk) => void) {
    this.#pass = pass;
    const [text, reasoning] = [secrets.stream(), secrets.stream()];
    if (text === undefined || reasoning === undefined) return;
    this.#open = { text: { stream: text, last: undefined }, reasoning: { stream: reasoning, last: undefined } };
  }

  /** Runs once per delta. */
  take(chunk: Chunk): void {
    if (this.#open === undefined) return this.#pass(chunk);
    const open = this.#open[chunk.kind];
    if (open.last !== undefined && open.last.messageId !== chunk.messageId) this.#end(open);
    open.last = chunk;
    const text = open.stream.take(chunk.text);
    if (text === chunk.text) this.#pass(chunk);
    else if (text !== '') this.#pass({ ...chunk, text });
  }

  /** Before this event is logged: passes on what waits, if the event ends the answer. */
  before({ type }: Pick<EventInput, 'type'>): void {
    if (this.#open === undefined || (type !== 'assistant/message' && type !== 'llm/retry' && type !== 'turn/end')) return;
    this.#end(this.#open.reasoning);
    this.#end(this.#open.text);
  }

  #end(open: OpenMessage): void {
    const { last } = open;
    open.last = undefined;
    const text = open.stream.end();
    if (last !== undefined && text !== '') this.#pass({ ...last, text });
  }
}
