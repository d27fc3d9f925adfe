/** Reads the stamps of the model server out of the words of a load, and keeps how long each was on its way. */
import { LatencyHistogram, type Percentiles } from './histogram.ts';
import type { LoadSession } from './load-session.ts';

export type MeterFigures = { readonly [key in 'turn' | 'first' | 'addedFirst' | 'added' | 'modelLate']: Percentiles };

/** One for each repeat. */
export class LoadMeter {
  readonly #turn = new LatencyHistogram();
  readonly #first = new LatencyHistogram();
  readonly #addedFirst = new LatencyHistogram();
  readonly #added = new LatencyHistogram();
  readonly #modelLate = new LatencyHistogram();
  readonly #delayMs: number;
  /** Words that are no stamp of the model server, and turns without all of theirs. */
  wrong = 0;

  /** @param delayMs the pace that the plans ask for */
  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Takes the text of an update, which may hold several deltas. `at` is when it came. */
  text(session: LoadSession, text: string, at: number): void {
    for (const word of text.split(' ')) if (word !== '') this.#word(session, word, at);
  }

  /** A turn that was to be prompted at `askedAt` was answered just now. */
  answered(
    session: LoadSession,
    turn: { readonly askedAt: number; readonly at: number; readonly reason: string; readonly tokens: number },
  ): void {
    this.#turn.record(turn.at - turn.askedAt);
    if (turn.reason !== 'end_turn' || session.tokens !== turn.tokens) this.wrong += 1;
    session.tokens = 0;
  }

  figures(): MeterFigures {
    return {
      turn: this.#turn.percentiles(),
      first: this.#first.percentiles(),
      addedFirst: this.#addedFirst.percentiles(),
      added: this.#added.percentiles(),
      modelLate: this.#modelLate.percentiles(),
    };
  }

  #word(session: LoadSession, word: string, at: number): void {
    // Slashes behind the second number fill a delta up.
    const [due, sent] = word.split('/', 2).map(Number);
    const askedAt = session.asked[0];
    if (due === undefined || sent === undefined || !(due > 0 && sent > 0) || askedAt === undefined) {
      this.wrong += 1;
      return;
    }
    session.tokens += 1;
    this.#modelLate.record(sent - due);
    this.#added.record(at - sent);
    if (session.tokens > 1) return;
    this.#first.record(at - askedAt);
    // The first delta is due one pace behind the reading of the request.
    this.#addedFirst.record(due - this.#delayMs - askedAt + (at - sent));
  }
}
