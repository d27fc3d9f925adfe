/**
 * The client's view of one session: events and deltas, projected and put into the thread's outbox.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { EventData, EventInput, LogEvent } from '../../shared/events.ts';
import { noSecrets, type SecretValues } from '../../shared/secret-values.ts';
import type { CardChange } from '../../shared/thread-protocol.ts';
import type { LiveView } from '../agent/live-view.ts';
import { ChunkPacer } from '../outbox/chunk-pacer.ts';
import { ChunkSource } from '../outbox/chunk-source.ts';
import type { ThreadOutbox } from '../outbox/thread-outbox.ts';
import type { Projector } from '../projection/projector.ts';
import { titleUpdates } from '../projection/session-updates.ts';
import { CleanTexts } from './clean-texts.ts';
import { DraftedCalls } from './drafted-calls.ts';
import type { SessionView } from './session-journal.ts';

export interface SessionScreenOptions {
  readonly sessionId: string;
  readonly projector: Projector;
  readonly outbox: ThreadOutbox;
  /** Frames of streamed text a second; `0` or nothing: as the text comes. */
  readonly maxUpdatesPerSecond?: number;
  /** Are in no draft and no running output; what is logged was looked through before. */
  readonly secrets?: SecretValues;
}

export class SessionScreen implements SessionView {
  /** What is not logged; absent where the profile shows nothing of it. */
  readonly live: LiveView | undefined;
  readonly #projector: Projector;
  readonly #outbox: ThreadOutbox;
  readonly #sessionId: string;
  readonly #chunks: ChunkSource;
  readonly #pacer: ChunkPacer | undefined;
  readonly #drafts: DraftedCalls;
  readonly #outputs: CleanTexts;

  constructor({ sessionId, projector, outbox, maxUpdatesPerSecond = 0, secrets = noSecrets }: SessionScreenOptions) {
    this.#sessionId = sessionId;
    this.#projector = projector;
    this.#outbox = outbox;
    this.#chunks = new ChunkSource(({ kind, messageId, text }) => projector.chunkFrame(kind, messageId, text));
    this.#pacer =
      maxUpdatesPerSecond === 0
        ? undefined
        : new ChunkPacer({ intervalMs: 1000 / maxUpdatesPerSecond, emit: (chunk) => outbox.sendChunk(this.#chunks, chunk) });
    this.#drafts = new DraftedCalls({
      show: (callId, name, args) => this.#send(projector.draft(callId, name, args)),
      hasRoom: () => outbox.keepsUp,
      secrets,
    });
    this.#outputs = new CleanTexts(secrets);
    this.live = projector.showsLive
      ? {
          draft: (draft) => this.#drafts.take(draft),
          outputPaceMs: projector.outputPaceMs,
          output: (callId, text) => this.#send(projector.output(callId, this.#outputs.take(callId, text))),
        }
      : undefined;
  }

  show(event: LogEvent): void {
    const tellsOfDrafts = event.type === 'assistant/message' || event.type === 'llm/retry' || event.type === 'turn/end';
    if (tellsOfDrafts) this.#drafts.clear();
    if (event.type === 'tool/result') this.#send(this.#projector.output(event.data.callId, this.#outputs.end(event.data.callId)));
    this.#send(this.#projector.project(event));
  }

  tell(event: EventInput): void {
    this.#send(this.#projector.project(event));
  }

  showChunk(chunk: EventData['assistant/chunk']): void {
    if (!this.#projector.showsLive) return;
    if (this.#pacer === undefined) this.#outbox.sendChunk(this.#chunks, chunk);
    else this.#pacer.add(chunk);
  }

  /** Behind a replayed log that has no title: the one that its prompt gives. */
  showTitle(unlogged: { readonly title: string; readonly time: number } | undefined): void {
    if (unlogged !== undefined) this.#send(titleUpdates(unlogged, unlogged.time));
  }

  /** Shows an event of a replayed log; a promise when the reading must wait for the client (until `signal`) or for other sessions. */
  replay(event: LogEvent, signal?: AbortSignal): void | Promise<void> {
    this.show(event);
    const room = this.#outbox.whenWritable(signal);
    if (room !== undefined) return room;
    // A long log must not hold up the other sessions of the thread.
    if (event.seq % eventsPerTurn === eventsPerTurn - 1) return new Promise((resolve) => setImmediate(resolve));
  }

  /**
   * Ends as failed the cards of a turn that nobody is left to end: the log breaks off, or could not take the end of the turn.
   * Without effect behind a `turn/end`.
   */
  endCards(): void {
    this.#drafts.clear();
    this.#outputs.clear();
    this.#send(this.#projector.endCards());
  }

  #send(updates: readonly SessionUpdate[]): void {
    this.#pacer?.flush();
    for (const update of updates) this.#outbox.send(this.#projector.frame(update), this.#cardChange(update));
  }

  /** What main must know to end the card itself, should this thread be lost. */
  #cardChange(update: SessionUpdate): CardChange | undefined {
    if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') return undefined;
    const { toolCallId: callId, status, _meta } = update;
    if (update.sessionUpdate === 'tool_call') {
      const isTerminal = _meta !== undefined && _meta !== null && 'terminal_info' in _meta;
      return { sessionId: this.#sessionId, callId, open: true, ...(isTerminal ? { terminal: true } : {}) };
    }
    return status === 'completed' || status === 'failed' ? { sessionId: this.#sessionId, callId, open: false } : undefined;
  }
}

const eventsPerTurn = 256;
