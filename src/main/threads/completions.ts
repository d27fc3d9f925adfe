/**
 * What main waits for from the threads: the end of a turn, the end of a replay. Each is settled at most once; a completion
 * that nobody waits for any more (a cancel was answered already) is dropped.
 */
import type { Completion, LoadOutcome, TurnOutcome } from '../../shared/thread-protocol.ts';

interface Waiting {
  readonly turn?: (outcome: TurnOutcome) => void;
  readonly loaded?: (outcome: LoadOutcome) => void;
}

export class Completions {
  #next = 1;
  readonly #waiting = new Map<number, Waiting>();
  readonly #onTurn: (outcome: TurnOutcome) => void;

  /** @param onTurn told of every turn's end, also when nobody waits for it any more */
  constructor(onTurn: (outcome: TurnOutcome) => void = () => undefined) {
    this.#onTurn = onTurn;
  }

  /** A number for a prompt and the promise of its end. */
  expectTurn(): { readonly requestId: number; readonly end: Promise<TurnOutcome> } {
    const requestId = this.#next++;
    const end = new Promise<TurnOutcome>((resolve) => this.#waiting.set(requestId, { turn: resolve }));
    return { requestId, end };
  }

  /** A number for a replay and the promise of its end. */
  expectLoad(): { readonly requestId: number; readonly end: Promise<LoadOutcome> } {
    const requestId = this.#next++;
    const end = new Promise<LoadOutcome>((resolve) => this.#waiting.set(requestId, { loaded: resolve }));
    return { requestId, end };
  }

  settle(completion: Completion): void {
    if (completion.kind === 'turn') this.#onTurn(completion.outcome);
    const waiting = this.#waiting.get(completion.requestId);
    this.#waiting.delete(completion.requestId);
    if (completion.kind === 'turn') waiting?.turn?.(completion.outcome);
    else waiting?.loaded?.(completion.outcome);
  }

  forget(requestId: number): void {
    this.#waiting.delete(requestId);
  }
}
