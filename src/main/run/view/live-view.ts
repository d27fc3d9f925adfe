/**
 * The view of a run on a terminal: drawn in place, at most ten times a second however many events come.
 */
import { createLogUpdate } from 'log-update';
import type { RunEvent, RunObserver } from '../run-event.ts';
import { drawFrame } from './live-frame.ts';
import { RunTally } from './run-tally.ts';
import type { ViewStream } from './view-stream.ts';

const redrawMs = 100;
/** Clocks on screen move although nothing happens. */
const idleRedrawMs = 1000;
const hideCursor = '\u001b[?25l';
const showCursor = '\u001b[?25h';

export interface LiveViewOptions {
  readonly stream: ViewStream;
  readonly now: () => number;
  readonly color: boolean;
}

export class LiveView implements RunObserver {
  readonly #options: LiveViewOptions;
  readonly #tally = new RunTally();
  readonly #draw: ReturnType<typeof createLogUpdate>;
  #timer: NodeJS.Timeout | undefined;
  #drawnAt = -Infinity;
  #changed = false;
  #broken = false;
  readonly #restore = (): void => {
    this.#write(showCursor);
  };
  readonly #resized = (): void => {
    this.#changed = true;
  };
  readonly #failed = (): void => {
    this.#broken = true;
  };

  constructor(options: LiveViewOptions) {
    this.#options = options;
    // The cursor is ours: log-update hides the one of stderr, whatever stream it draws on.
    this.#draw = createLogUpdate(options.stream, { showCursor: true });
  }

  onEvent(event: RunEvent): void {
    this.#tally.apply(event);
    this.#changed = true;
    if (event.type === 'run/start') this.#begin();
    // What is said behind the run must not be drawn over.
    if (event.type === 'run/end') this.#end();
  }

  /** Draws if there is something new and the last drawing is old enough. Called by a timer. */
  tick(): void {
    if (this.#timer === undefined) return;
    const since = this.#options.now() - this.#drawnAt;
    if (since >= idleRedrawMs || (this.#changed && since >= redrawMs)) this.#redraw();
  }

  /** Ends the view if no event did: the run broke off. */
  async finish(): Promise<void> {
    this.#end();
  }

  #begin(): void {
    if (this.#timer !== undefined) return;
    this.#options.stream.on('error', this.#failed);
    this.#options.stream.on('resize', this.#resized);
    // Also an exit by a second signal must not leave a terminal without its cursor.
    process.once('exit', this.#restore);
    this.#write(hideCursor);
    this.#timer = setInterval(() => this.tick(), redrawMs);
    this.#timer.unref();
    this.#redraw();
  }

  /** Draws the last state, leaves it on the screen and gives the cursor back. */
  #end(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#redraw();
    this.#draw.done();
    this.#restore();
    process.off('exit', this.#restore);
    this.#options.stream.off('resize', this.#resized);
  }

  #redraw(): void {
    const { stream, now, color } = this.#options;
    this.#drawnAt = now();
    this.#changed = false;
    // A terminal that does not know its size says 0.
    const columns = stream.columns !== undefined && stream.columns > 0 ? stream.columns : 80;
    const lines = drawFrame(this.#tally, this.#drawnAt, { columns, rows: stream.rows ?? 0, color });
    if (!this.#broken) this.#draw(lines.join('\n'));
  }

  #write(text: string): void {
    if (!this.#broken) this.#options.stream.write(text);
  }
}
