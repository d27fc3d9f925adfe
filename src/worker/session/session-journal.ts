/**
 * The journal of one session: log first, then the client's view, through one projection.
 */
import type { EventData, EventInput, LogEvent } from '../../shared/events.ts';
import type { Journal } from '../agent/journal.ts';
import { ChunkMerger } from '../log/chunk-merger.ts';
import type { EventLog } from '../log/event-log.ts';

/** Shows events to the client; the projection and the outbox behind one door. */
export interface SessionView {
  show(event: EventInput & { readonly time: number }): void;
  showChunk(chunk: EventData['assistant/chunk']): void;
}

export class SessionJournal implements Journal {
  readonly #log: EventLog;
  readonly #view: SessionView;
  readonly #merger: ChunkMerger;
  /** Set when a merged chunk could not be logged: the next append or barrier throws it. */
  #chunkFault: unknown;

  constructor(log: EventLog, view: SessionView) {
    this.#log = log;
    this.#view = view;
    this.#merger = new ChunkMerger((chunk) => this.#logChunk(chunk));
  }

  append(event: EventInput): LogEvent {
    this.#merger.flush();
    this.#throwChunkFault();
    const logged = this.#log.append(event);
    this.#view.show(logged);
    return logged;
  }

  delta(chunk: EventData['assistant/chunk']): void {
    this.#merger.push(chunk);
    this.#view.showChunk(chunk);
  }

  async barrier(): Promise<void> {
    this.#merger.flush();
    this.#throwChunkFault();
    await this.#log.barrier();
  }

  /** Flushes what waits and gives the log up. */
  async close(): Promise<void> {
    try {
      this.#merger.flush();
    } finally {
      await this.#log.close();
    }
  }

  #logChunk(chunk: EventData['assistant/chunk']): void {
    try {
      this.#log.append({ type: 'assistant/chunk', data: chunk });
    } catch (error) {
      // The merger's timer has no caller to throw to.
      this.#chunkFault = error;
    }
  }

  #throwChunkFault(): void {
    const fault = this.#chunkFault;
    this.#chunkFault = undefined;
    if (fault !== undefined) throw fault;
  }
}
