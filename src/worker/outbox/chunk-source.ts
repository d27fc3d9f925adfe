/**
 * Streamed text of one session on its way into the outbox.
 *
 * As long as the client keeps up each delta is a frame of its own. While it is behind, deltas of one message wait here and
 * become one frame, so that a slow client gets fewer and larger frames with the same text.
 */
import type { EventData } from '../../shared/events.ts';

export type Chunk = Pick<EventData['assistant/chunk'], 'kind' | 'messageId' | 'text'>;

/** UTF-16 units that wait for one frame; more of them begin the next one. */
const longestFrame = 32 * 1024;
/** What a delta that waits takes of the memory beside its text, in bytes. */
const bytesPerDelta = 64;

/** Deltas of one message that have waited, and what they were counted as. */
export interface WaitedChunk {
  readonly chunk: Chunk;
  readonly cost: number;
}

/** What a delta counts as while it waits. */
export function waitingCost({ text }: Chunk): number {
  return text.length + bytesPerDelta;
}

export class ChunkSource {
  readonly #frame: (chunk: Chunk) => string;
  #waiting: WaitedChunk | undefined;

  /** @param frame the frame of a chunk, LF included; an empty text for one that is not shown */
  constructor(frame: (chunk: Chunk) => string) {
    this.#frame = frame;
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined;
  }

  /** The frame of a chunk that waits for nothing. */
  frame(chunk: Chunk): string {
    return this.#frame(chunk);
  }

  /** Lets a chunk wait; gives what waited before it where the two are not of one frame. */
  add(chunk: Chunk): WaitedChunk | undefined {
    const before = this.#waiting;
    const cost = waitingCost(chunk);
    if (before === undefined || !continues(before.chunk, chunk)) {
      this.#waiting = { chunk, cost };
      return before;
    }
    this.#waiting = { chunk: { ...before.chunk, text: before.chunk.text + chunk.text }, cost: before.cost + cost };
    return undefined;
  }

  /** What waits; nothing waits afterwards. */
  take(): WaitedChunk | undefined {
    const waited = this.#waiting;
    this.#waiting = undefined;
    return waited;
  }
}

/** Whether a chunk is more of the same message, and small enough for the same frame. */
export function continues(before: Chunk, chunk: Chunk): boolean {
  if (before.messageId !== chunk.messageId || before.kind !== chunk.kind) return false;
  return before.text.length + chunk.text.length <= longestFrame;
}
