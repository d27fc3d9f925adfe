/**
 * Main's side of one session thread: its data port (updates in, credit out), its control port (permission requests) and
 * its heartbeat. Made when the first session reports from the thread; closed after the thread's last message.
 */
import type { MessagePort } from 'node:worker_threads';
import { expose, portEndpoint } from '../../shared/comlink.ts';
import { type CreditReturn, creditReturnBytes, type DataBatch, type MainServices, type ThreadPorts } from '../../shared/thread-protocol.ts';
import type { FrameWriter } from '../transport/frame-writer.ts';
import type { ServerCounters } from '../telemetry/server-counters.ts';
import type { Completions } from './completions.ts';
import { OpenCards } from './open-cards.ts';

export interface ThreadLaneParts {
  readonly writer: FrameWriter;
  readonly completions: Completions;
  readonly services: (lane: ThreadLane) => MainServices;
  /** Absent where nobody counts. */
  readonly counters?: Pick<ServerCounters, 'updatesWritten'>;
}

/** Sessions whose last end of a turn is remembered; a question of a turn is at most some messages behind its end. */
const mostTurnEnds = 256;

export class ThreadLane {
  readonly threadId: number;
  /** Fulfils once every message the thread posted before its end has been handled. */
  readonly drained: Promise<void>;
  /** The thread was ended for what it held: its one session is told so. */
  endedForMemory = false;
  readonly #data: MessagePort;
  readonly #control: MessagePort;
  readonly #heartbeat: Int32Array;
  readonly #writer: FrameWriter;
  readonly #completions: Completions;
  readonly #services: MainServices;
  readonly #counters: Pick<ServerCounters, 'updatesWritten'> | undefined;
  readonly #openCards = new OpenCards();
  /** By session, in order of time: the batch that ended its last turn. */
  readonly #turnEnds = new Map<string, number>();
  #lastBatch = 0;
  #unreturnedBytes = 0;
  #batchWaiters: { readonly batch: number; readonly resolve: () => void }[] = [];

  constructor(threadId: number, ports: ThreadPorts, parts: ThreadLaneParts) {
    this.threadId = threadId;
    this.#data = ports.data;
    this.#control = ports.control;
    this.#heartbeat = new Int32Array(ports.heartbeat);
    this.#writer = parts.writer;
    this.#completions = parts.completions;
    this.#counters = parts.counters;
    this.#data.on('message', (batch: DataBatch) => this.#take(batch));
    this.drained = new Promise((resolve) =>
      this.#data.once('close', () => {
        this.#releaseBatchWaiters(Number.POSITIVE_INFINITY);
        resolve();
      }),
    );
    this.#services = parts.services(this);
    expose(this.#services, portEndpoint(this.#control));
  }

  /** Grows while the thread has turns and its event loop runs. */
  get heartbeat(): number {
    return Atomics.load(this.#heartbeat, 0);
  }

  /** As the system numbers the thread; `0` when it is not known. */
  get osThreadId(): number {
    return this.#heartbeat.length < 3 ? 0 : Atomics.load(this.#heartbeat, 2);
  }

  /** Heap and buffers of the thread when its heart last beat, in bytes; what grows while it stands still is not in it. */
  get memoryBytes(): number {
    return this.#heartbeat.length < 2 ? 0 : 1024 * Atomics.load(this.#heartbeat, 1);
  }

  /** Fulfils once the batch has been handed to the writer, so that what follows stands behind its text. */
  batchTaken(batch: number): Promise<void> {
    if (batch <= this.#lastBatch) return Promise.resolve();
    return new Promise((resolve) => this.#batchWaiters.push({ batch, resolve }));
  }

  /** Whether the client has been shown the end of the call: nothing can be asked about it any more. */
  hasEndedCard(sessionId: string, callId: string): boolean {
    return this.#openCards.hasEnded(sessionId, callId);
  }

  /** Whether a turn of the session has ended behind this batch. */
  hasEndedTurn(sessionId: string, behindBatch: number): boolean {
    return (this.#turnEnds.get(sessionId) ?? 0) > behindBatch;
  }

  /** Ends the tool cards that a session had open when the thread was lost, and names their calls. To be called once {@link drained}. */
  failOpenCards(sessionId: string): readonly string[] {
    const { callIds, frames } = this.#openCards.close(sessionId);
    if (frames !== '') this.#writer.write(frames);
    return callIds;
  }

  close(): void {
    this.#data.close();
    this.#control.close();
  }

  /** Completions are settled after the text was queued: the response is written behind it. */
  #take(batch: DataBatch): void {
    if (batch.text !== '') this.#writer.write(batch.text, () => this.#written(batch.bytes));
    this.#counters?.updatesWritten(batch.frames, batch.bytes);
    for (const change of batch.cards) this.#openCards.note(change);
    for (const completion of batch.completions) {
      if (completion.kind === 'turn') this.#noteTurnEnd(completion.sessionId, batch.batch);
      this.#completions.settle(completion);
    }
    for (const { leaseId, report } of batch.released ?? []) void this.#services.releaseModelSlot(leaseId, report);
    this.#lastBatch = batch.batch;
    if (this.#batchWaiters.length > 0) this.#releaseBatchWaiters(batch.batch);
  }

  #noteTurnEnd(sessionId: string, batch: number): void {
    this.#turnEnds.delete(sessionId);
    this.#turnEnds.set(sessionId, batch);
    if (this.#turnEnds.size <= mostTurnEnds) return;
    for (const oldest of this.#turnEnds.keys()) {
      this.#turnEnds.delete(oldest);
      break;
    }
  }

  #written(bytes: number): void {
    this.#unreturnedBytes += bytes;
    if (this.#unreturnedBytes < creditReturnBytes) return;
    const message: CreditReturn = { credit: this.#unreturnedBytes };
    this.#unreturnedBytes = 0;
    this.#data.postMessage(message);
  }

  #releaseBatchWaiters(batch: number): void {
    const ready = this.#batchWaiters.filter((waiter) => waiter.batch <= batch);
    this.#batchWaiters = this.#batchWaiters.filter((waiter) => waiter.batch > batch);
    for (const waiter of ready) waiter.resolve();
  }
}
