/**
 * The client's view of one session: events and deltas, projected and put into the thread's outbox.
 */
import type { SessionView } from './session-journal.ts';
import type { EventData, LogEvent } from '../../shared/events.ts';
import type { ThreadOutbox } from '../outbox/thread-outbox.ts';
import type { Projector } from '../projection/projector.ts';

export class SessionScreen implements SessionView {
  readonly #projector: Projector;
  readonly #outbox: ThreadOutbox;

  constructor(projector: Projector, outbox: ThreadOutbox) {
    this.#projector = projector;
    this.#outbox = outbox;
  }

  show(event: LogEvent): void {
    for (const frame of this.#projector.projectFrames(event)) this.#outbox.send(frame);
  }

  showChunk(chunk: EventData['assistant/chunk']): void {
    this.#outbox.send(this.#projector.chunkFrame(chunk.kind, chunk.messageId, chunk.text));
  }

  /** Shows an event of a replayed log; a promise when the reading must wait for the client or for other sessions. */
  replay(event: LogEvent): void | Promise<void> {
    this.show(event);
    const room = this.#outbox.whenWritable();
    if (room !== undefined) return room;
    // A long log must not hold up the other sessions of the thread.
    if (event.seq % eventsPerTurn === eventsPerTurn - 1) return new Promise((resolve) => setImmediate(resolve));
  }
}

const eventsPerTurn = 256;
