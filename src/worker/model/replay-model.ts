/**
 * Plays recorded model streams, call by call, through the translation that live streams go through. For tests and benches.
 *
 * It answers nothing but what was recorded: a call that does not fit, or one too many, is an error that says so. The format of the
 * file is described in `recorded-turns.ts`.
 */
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { ChatTranslator } from './chat-translator.ts';
import {
  type ModelAdapter,
  type ModelEvent,
  ModelFailure,
  type ModelFinish,
  type ModelRequest,
  type StreamOptions,
} from './model-adapter.ts';
import { loadRecordedTurns, type RecordedTurn, requestHash } from './recorded-turns.ts';
import { SseDecoder } from './sse-decoder.ts';
import { usedCallIds } from './tool-call-joiner.ts';

/** Pieces between two yields to the event loop when there is no delay. */
const burst = 64;

export class ReplayModel implements ModelAdapter {
  readonly provider = 'replay';
  readonly model = 'replay';
  readonly contextWindow = 1_000_000;
  readonly #turns: readonly RecordedTurn[];
  #next: number | undefined;

  /** @param turns one session's calls in order; see `recorded-turns.ts` */
  constructor(turns: readonly RecordedTurn[]) {
    this.#turns = turns;
  }

  /** @throws ServerError CONFIG_INVALID when the file cannot be used */
  static open(path: string): ReplayModel {
    return new ReplayModel(loadRecordedTurns(path));
  }

  async stream(request: ModelRequest, sink: (event: ModelEvent) => void, options: StreamOptions): Promise<ModelFinish> {
    checkAbort(options.signal);
    const index = this.#next ?? this.#resumeAt(request);
    this.#next = index + 1;
    const turn = this.#turns[index];
    if (turn === undefined) {
      throw new ModelFailure('SCRIPT_MISMATCH', `The recording has ${this.#turns.length} model calls, but call ${index + 1} was made.`);
    }
    checkExpectation(turn, index, request);
    const translator = new ChatTranslator({ usedCallIds: () => usedCallIds(request.messages), sink, apiKey: undefined });
    await play(turn, translator, options);
    checkAbort(options.signal);
    if (turn.hang) await untilAborted(options.signal);
    if (turn.failure !== undefined) throw turn.failure();
    return translator.finish();
  }

  /** A revived session goes on behind the answers that its history holds. */
  #resumeAt(request: ModelRequest): number {
    let answers = request.messages.filter((message) => message.role === 'assistant').length;
    let index = 0;
    for (; answers > 0 && index < this.#turns.length; index += 1) {
      const turn = this.#turns[index];
      if (turn !== undefined && !turn.hang && turn.failure === undefined) answers -= 1;
    }
    return index + answers;
  }
}

function checkExpectation(turn: RecordedTurn, index: number, request: ModelRequest): void {
  const lastUser = request.messages.findLast((message) => message.role === 'user')?.text ?? '';
  if (turn.lastUser !== undefined && !turn.lastUser.test(lastUser)) {
    throw new ModelFailure(
      'SCRIPT_MISMATCH',
      `Recorded call ${index + 1} expects a last user message that matches ${String(turn.lastUser)}, but it was ${JSON.stringify(lastUser.slice(0, 200))}.`,
    );
  }
  if (turn.requestHash === undefined) return;
  const hash = requestHash(request);
  if (hash !== turn.requestHash) {
    throw new ModelFailure(
      'SCRIPT_MISMATCH',
      `Recorded call ${index + 1} expects the request hash ${turn.requestHash}, but it was ${hash}.`,
    );
  }
}

async function play(turn: RecordedTurn, translator: ChatTranslator, options: StreamOptions): Promise<void> {
  const decoder = new SseDecoder((data) => {
    if (!options.signal.aborted) translator.take(data);
  });
  for (const [index, piece] of turn.pieces.entries()) {
    if (turn.delayMs > 0) await pause(turn.delayMs, options.signal);
    else if (index % burst === burst - 1) await nextTick();
    checkAbort(options.signal);
    decoder.feed(piece);
    const room = options.whenWritable();
    if (room !== undefined) await room;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    // The only way a sleep rejects is its signal.
    checkAbort(signal);
  }
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(aborted()), { once: true });
  });
}

function checkAbort(signal: AbortSignal): void {
  if (signal.aborted) throw aborted();
}

function aborted(): ModelFailure {
  return new ModelFailure('ABORTED', 'The model call was cancelled.');
}
