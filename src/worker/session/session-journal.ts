/**
 * The journal of one session: log first, then the client's view, through one projection.
 */
import type { EventData, EventInput, LogEvent } from '../../shared/events.ts';
import type { Journal } from '../agent/journal.ts';
import type { LiveView } from '../agent/live-view.ts';
import { ChunkMerger } from '../log/chunk-merger.ts';
import type { EventLog } from '../log/event-log.ts';
import type { SecretValues } from '../../shared/secret-values.ts';
import { CleanChunks } from './clean-chunks.ts';

/** Shows events to the client: the projection and the outbox behind one door. */
export interface SessionView {
  show(event: LogEvent): void;
  /** Shows what the log has already, to a client that has not seen it. */
  tell?(event: EventInput): void;
  /** The quick way of a streamed delta. */
  showChunk(chunk: EventData['assistant/chunk']): void;
  /** What can be shown without being logged; absent where nobody looks. */
  readonly live?: LiveView | undefined;
  /** The turn is over. Ends what its log could not. */
  endCards?(): void;
}

export class SessionJournal implements Journal {
  readonly #view: SessionView;
  readonly #merger: ChunkMerger;
  readonly #secrets: SecretValues;
  readonly #chunks: CleanChunks;
  #log: EventLog | undefined;

  /** @param secrets are in nothing that is logged or shown */
  constructor(secrets: SecretValues, view: SessionView) {
    this.#view = view;
    this.#secrets = secrets;
    this.#chunks = new CleanChunks(secrets, (chunk) => {
      this.#merger.add(chunk);
      view.showChunk(chunk);
    });
    this.#merger = new ChunkMerger({ emit: (chunk) => void this.#opened().append({ type: 'assistant/chunk', data: chunk }) });
  }

  /** The agent is rebuilt from the log while it is being opened, so it exists before its log can be written. */
  open(log: EventLog): void {
    this.#log = log;
  }

  append(event: EventInput): LogEvent {
    return this.appendAll([event])[0]!;
  }

  appendAll(events: readonly EventInput[]): LogEvent[] {
    for (const event of events) this.#chunks.before(event);
    const chunk = this.#merger.waiting;
    const log = this.#opened();
    if (chunk === undefined) return this.#shown(log.appendAll(events));
    const [, ...logged] = log.appendAll([{ type: 'assistant/chunk', data: chunk }, ...events]);
    this.#merger.discard();
    return this.#shown(logged);
  }

  /** Shows an event and logs nothing. */
  tell(event: EventInput): void {
    this.#view.tell?.(this.#secrets.without(event));
  }

  delta(chunk: EventData['assistant/chunk']): void {
    this.#chunks.take(chunk);
  }

  async barrier(): Promise<void> {
    this.#merger.flush();
    await this.#opened().barrier();
  }

  syncSoon(): void {
    this.#opened().syncSoon();
  }

  /** Logs what waits and gives the log up, also when the disk refuses what waits. */
  async close(): Promise<void> {
    try {
      this.#merger.flush();
    } finally {
      this.#merger.discard();
      await this.#log?.close();
    }
  }

  /** {@link replay} of what is on the disk: an answer that is read back must not be lost with the power. */
  async replayDurable(onEvent: (event: LogEvent) => void | Promise<void>): Promise<void> {
    await this.barrier();
    await this.replay(onEvent);
  }

  /** Reads the whole log again; `onEvent` may return a promise to hold the reading back. */
  async replay(onEvent: (event: LogEvent) => void | Promise<void>): Promise<void> {
    this.#merger.flush();
    await this.#opened().replay(onEvent);
  }

  #shown(events: LogEvent[]): LogEvent[] {
    for (const event of events) this.#view.show(event);
    return events;
  }

  #opened(): EventLog {
    if (this.#log === undefined) throw new Error('the journal was written before its log was open');
    return this.#log;
  }
}
