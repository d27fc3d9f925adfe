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
  readonly #sessionId: string;

  constructor(sessionId: string, projector: Projector, outbox: ThreadOutbox) {
    this.#sessionId = sessionId;
    this.#projector = projector;
    this.#outbox = outbox;
  }

  show(event: LogEvent): void {
    const frames = this.#projector.projectFrames(event);
    if (frames.length === 0) return;
    if (event.type === 'tool/call' || event.type === 'tool/result') {
      // Before the frames: a batch may leave with any of them.
      this.#outbox.noteCard({ sessionId: this.#sessionId, callId: event.data.callId, open: event.type === 'tool/call' });
    }
    for (const frame of frames) this.#outbox.send(frame);
  }

  showChunk(chunk: EventData['assistant/chunk']): void {
    this.#outbox.send(this.#projector.chunkFrame(chunk.kind, chunk.messageId, chunk.text));
  }

  /** Shows an event of a replayed log; a promise when the reading must wait for the client (until `signal`) or for other sessions. */
  replay(event: LogEvent, signal?: AbortSignal): void | Promise<void> {
    this.show(event);
    const room = this.#outbox.whenWritable(signal);
    if (room !== undefined) return room;
    // A long log must not hold up the other sessions of the thread.
    if (event.seq % eventsPerTurn === eventsPerTurn - 1) return new Promise((resolve) => setImmediate(resolve));
  }

  /** Ends as failed the cards of a turn that nobody is left to end. */
  endCards(): void {
    for (const frame of this.#projector.endCardFrames()) this.#outbox.send(frame);
  }
}

const eventsPerTurn = 256;
