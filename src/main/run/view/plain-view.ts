/**
 * The view of a run where there is no terminal: a line for each end and each retry, and one every half minute that says how far it is.
 */
import type { RunEvent, RunObserver } from '../run-event.ts';
import { endText } from './end-text.ts';
import { countText, durationText, elapsedText } from './figures.ts';
import { spentText } from './live-frame.ts';
import { RunTally } from './run-tally.ts';
import { statusOrder } from './statuses.ts';
import { type ViewStream, writerTo } from './view-stream.ts';
import { visibleLine } from './visible-text.ts';

const progressMs = 30_000;
const tickMs = 1000;

export class PlainView implements RunObserver {
  readonly #now: () => number;
  readonly #write: (text: string) => void;
  readonly #tally = new RunTally();
  #timer: NodeJS.Timeout | undefined;
  #toldAt = 0;

  constructor(stream: ViewStream, now: () => number) {
    this.#now = now;
    this.#write = writerTo(stream);
  }

  onEvent(event: RunEvent): void {
    this.#tally.apply(event);
    switch (event.type) {
      case 'run/start':
        this.#begin(event);
        return;
      case 'job/retry':
        this.#line(
          `${visibleLine(event.key, 80)}  try ${event.tries} in ${durationText(event.delayMs)}  ${visibleLine(event.reason, 200)}`,
          'retry',
        );
        return;
      case 'job/end':
        this.#line(endText(event.result), `${this.#tally.ended}/${this.#tally.total}`);
        return;
      case 'run/draining':
        this.#line(`no new attempts are started: ${visibleLine(event.why, 200)}`, 'draining');
        return;
      case 'job/state':
      case 'job/turn':
      case 'job/progress':
      case 'run/end':
        return;
    }
  }

  /** Says how far the run is if it has not for a while. Called by a timer. */
  tick(): void {
    const now = this.#now();
    if (now - this.#toldAt < progressMs) return;
    this.#toldAt = now;
    this.#line(progressText(this.#tally, now), 'progress');
  }

  async finish(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #begin(event: Extract<RunEvent, { type: 'run/start' }>): void {
    this.#toldAt = this.#now();
    this.#timer ??= setInterval(() => this.tick(), tickMs);
    this.#timer.unref();
    const before = event.done === 0 ? '' : `, ${countText(event.done)} done before`;
    this.#line(`${countText(event.total)} attempts${before}, ${event.concurrency} at once, agent ${visibleLine(event.agent, 80)}`, 'start');
  }

  #line(text: string, word: string): void {
    this.#write(`[${word}] ${text}\n`);
  }
}

function progressText(tally: RunTally, now: number): string {
  const ends = statusOrder.filter((status) => tally.count(status) > 0).map((status) => `${status} ${countText(tally.count(status))}`);
  const left = tally.remainingMs(now);
  const parts = [
    `${countText(tally.ended)} of ${countText(tally.total)} after ${elapsedText(now - tally.startedAt)}`,
    ...ends,
    `at work ${tally.running.size}`,
    spentText(tally, now),
    ...(left === undefined ? [] : [`ETA ≈ ${elapsedText(left)}`]),
  ];
  return parts.join('  ');
}
