/**
 * A thread's way out: finished frames, gathered into batches for main, with the completions behind them.
 *
 * Main writes a batch as it is and gives the bytes back once stdout has taken them. While more than the thread's credit is
 * on its way, sessions that stream must wait ({@link ThreadOutbox.whenWritable}): that, and nothing else, bounds the memory
 * behind a client that does not read. `send` itself never waits and never drops: what has been logged is shown.
 */
import type { SlotRelease } from '../../shared/model-slots.ts';
import {
  batchBytes,
  batchFrames,
  type CardChange,
  type Completion,
  type DataBatch,
  threadCreditBytes,
} from '../../shared/thread-protocol.ts';
import { type Chunk, type ChunkSource, type WaitedChunk, waitingCost } from './chunk-source.ts';
import { WriterQueue } from './writer-queue.ts';

/** The part of a MessagePort that the outbox uses. */
export interface BatchPort {
  postMessage(batch: DataBatch): void;
}

export interface ThreadOutboxOptions {
  readonly creditBytes?: number;
  /** Runs a function at the end of the event-loop turn; for tests. */
  readonly schedule?: (run: () => void) => void;
}

export class ThreadOutbox {
  readonly #port: BatchPort;
  readonly #schedule: (run: () => void) => void;
  readonly #waiting: WriterQueue;
  /** Sources whose text waits, since the client is behind. */
  readonly #behind = new Set<ChunkSource>();
  /** With less credit than this the client is behind. Above it, what is written may not have been told yet. */
  readonly #enoughCredit: number;
  /** Of what is in the sources, not posted yet; counted against the credit. */
  #waitingCost = 0;
  #credit: number;
  #text = '';
  #frames = 0;
  #cards: CardChange[] = [];
  #completions: Completion[] = [];
  #released: SlotRelease[] = [];
  #postIsScheduled = false;
  #lastBatch = 0;

  constructor(port: BatchPort, options: ThreadOutboxOptions = {}) {
    this.#port = port;
    this.#schedule = options.schedule ?? setImmediate;
    this.#credit = options.creditBytes ?? threadCreditBytes;
    this.#enoughCredit = this.#credit / 2;
    this.#waiting = new WriterQueue(() => this.#credit, this.#schedule);
  }

  /** Bytes that may still be sent before writers have to wait; negative after frames that did not ask. */
  get credit(): number {
    return this.#credit;
  }

  /** Whether the client keeps up with what was posted: then nothing is held back here. */
  get keepsUp(): boolean {
    return this.#credit + this.#waitingCost >= this.#enoughCredit;
  }

  /**
   * Adds streamed text: as a frame of its own, or together with what follows of the same message while the client is
   * behind. Whatever else is sent later stands behind it.
   */
  sendChunk(source: ChunkSource, chunk: Chunk): void {
    if (this.#credit >= this.#enoughCredit && !source.isWaiting) {
      this.#append(source.frame(chunk));
      return;
    }
    const ready = source.add(chunk);
    const cost = waitingCost(chunk);
    this.#credit -= cost;
    this.#waitingCost += cost;
    this.#behind.add(source);
    if (ready !== undefined) this.#appendWaited(source, ready);
  }

  /**
   * Adds one finished frame, LF included. An empty text is no frame. Takes credit at once, below zero if need be.
   *
   * @param card what the frame does to a tool card; main learns of both together or of neither
   */
  send(frame: string, card?: CardChange): void {
    if (frame === '') return;
    if (this.#behind.size > 0) this.#appendAllWaiting();
    this.#append(frame, card);
  }

  #append(frame: string, card?: CardChange): void {
    if (frame === '') return;
    // Completions stand behind the text of their batch: later text must not slip in before them.
    if (this.#completions.length > 0) this.#post();
    // Joined and measured once per batch: doing so per frame costs more than making the frame. Until then a UTF-16
    // unit counts as a byte, which it is at least.
    if (card !== undefined) this.#cards.push(card);
    this.#text += frame;
    this.#frames += 1;
    this.#credit -= frame.length;
    if (this.#frames >= batchFrames || this.#text.length >= batchBytes) this.#post();
    else this.#postSoon();
  }

  /** Adds the end of something main waits for, behind every frame sent so far. Costs no credit. */
  complete(completion: Completion): void {
    if (this.#behind.size > 0) this.#appendAllWaiting();
    this.#completions.push(completion);
    this.#postSoon();
  }

  /** Gives a place at the model's provider back. Costs no credit. */
  release(released: SlotRelease): void {
    this.#released.push(released);
    this.#postSoon();
  }

  /**
   * Undefined while a writer may go on; else a promise that fulfils when it is this writer's turn. Writers are released in
   * the order in which they came. An aborted `signal` releases its writer at once.
   */
  whenWritable(signal?: AbortSignal): Promise<void> | undefined {
    if (this.#credit > 0 && this.#waiting.isEmpty) return undefined;
    return this.#waiting.wait(signal);
  }

  /** Main has written this many bytes. */
  returnCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#behind.size > 0 && this.keepsUp) this.#appendAllWaiting();
    this.#waiting.release();
  }

  /** Posts what is gathered and gives the number of the last batch posted: everything sent so far is in it or before it. */
  flush(): number {
    if (this.#behind.size > 0) this.#appendAllWaiting();
    this.#post();
    return this.#lastBatch;
  }

  #appendAllWaiting(): void {
    const sources = [...this.#behind];
    this.#behind.clear();
    for (const source of sources) {
      const waited = source.take();
      if (waited !== undefined) this.#appendWaited(source, waited);
    }
  }

  /** A frame takes its own credit; its deltas have taken some while they waited. */
  #appendWaited(source: ChunkSource, { chunk, cost }: WaitedChunk): void {
    this.#credit += cost;
    this.#waitingCost -= cost;
    this.#append(source.frame(chunk));
  }

  #postSoon(): void {
    if (this.#postIsScheduled) return;
    this.#postIsScheduled = true;
    this.#schedule(() => {
      this.#postIsScheduled = false;
      this.#post();
    });
  }

  #post(): void {
    if (this.#frames === 0 && this.#completions.length === 0 && this.#released.length === 0) return;
    this.#lastBatch += 1;
    const bytes = Buffer.byteLength(this.#text);
    this.#credit -= bytes - this.#text.length;
    const batch: DataBatch = {
      batch: this.#lastBatch,
      text: this.#text,
      bytes,
      frames: this.#frames,
      cards: this.#cards,
      completions: this.#completions,
      ...(this.#released.length === 0 ? {} : { released: this.#released }),
    };
    this.#text = '';
    this.#frames = 0;
    this.#cards = [];
    this.#completions = [];
    if (this.#released.length > 0) this.#released = [];
    this.#port.postMessage(batch);
  }
}
