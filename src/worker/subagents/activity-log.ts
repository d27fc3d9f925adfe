/**
 * What a run's child does, on its way into the session's log: merged and bounded. A child may stream for hours; its log
 * gets at most two moments a second and {@link mostLogged} events.
 *
 * A moment is logged at once when the last one is long enough ago, so a quiet child is shown without delay.
 */
import type { EventData } from '../../shared/events.ts';
import type { SubagentActivity } from '../../shared/subagent-protocol.ts';
import { sliceWhole } from '../display/title-line.ts';

export const momentMs = 500;
const mostLogged = 2_000;
/** UTF-16 units of one event. */
const pieceLength = 4_096;
/** Between two moments; what comes beyond is counted. */
const mostWaiting = 256;
const mostWaitingText = 256 * 1024;

export interface ActivityLogParts {
  readonly callId: string;
  readonly runId: string;
  /** @throws ServerError LOG_WRITE_FAILED */
  readonly record: (event: { readonly type: 'subagent/activity'; readonly data: EventData['subagent/activity'] }) => void;
  /** A moment that came by timer could not be logged. */
  readonly onFault: (error: unknown) => void;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

export class ActivityLog {
  readonly #parts: ActivityLogParts;
  readonly #now: () => number;
  #waiting: SubagentActivity[] = [];
  #waitingText = 0;
  #lastMoment = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #logged = 0;
  #unlogged = 0;

  constructor(parts: ActivityLogParts) {
    this.#parts = parts;
    this.#now = parts.now ?? (() => performance.now());
  }

  /** Activities that are in no event: more than the bound of a run, or lost on their way here. */
  get unlogged(): number {
    return this.#unlogged;
  }

  /** Counts activities that were lost before they came here. */
  lost(count: number): void {
    this.#unlogged += count;
  }

  /** Takes in what came together; logs it now or with the next moment. @throws ServerError LOG_WRITE_FAILED */
  take(activities: readonly SubagentActivity[]): void {
    for (const activity of activities) this.#merge(activity);
    if (this.#waiting.length === 0 || this.#timer !== undefined) return;
    const wait = this.#lastMoment + momentMs - this.#now();
    if (wait <= 0) this.#logMoment();
    else this.#timer = setTimeout(() => this.#logByTimer(), wait).unref();
  }

  /** Logs what waits: the run is over. @throws ServerError LOG_WRITE_FAILED */
  finish(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#logMoment();
  }

  #logByTimer(): void {
    this.#timer = undefined;
    try {
      this.#logMoment();
    } catch (error) {
      this.#parts.onFault(error);
    }
  }

  #merge(activity: SubagentActivity): void {
    const last = this.#waiting.at(-1);
    if (activity.kind === 'text' && last?.kind === 'text') {
      this.#addText(last, activity.text);
      return;
    }
    const place = this.#waiting.findIndex((waiting) => isReplaced(waiting, activity));
    if (place >= 0) this.#waiting[place] = activity;
    else if (this.#waiting.length >= mostWaiting) this.#unlogged += 1;
    else if (activity.kind === 'text') this.#addText(undefined, activity.text);
    else this.#waiting.push(activity);
  }

  #addText(last: SubagentActivity | undefined, text: string): void {
    const room = mostWaitingText - this.#waitingText;
    const kept = text.length <= room ? text : sliceWhole(text, Math.max(0, room));
    if (kept.length < text.length) this.#unlogged += 1;
    if (kept === '') return;
    this.#waitingText += kept.length;
    if (last?.kind === 'text') this.#waiting[this.#waiting.length - 1] = { kind: 'text', text: last.text + kept };
    else this.#waiting.push({ kind: 'text', text: kept });
  }

  #logMoment(): void {
    if (this.#waiting.length === 0) return;
    const pieces = this.#waiting.flatMap(cut);
    this.#waiting = [];
    this.#waitingText = 0;
    this.#lastMoment = this.#now();
    const fitting = pieces.slice(0, mostLogged - this.#logged);
    this.#logged += fitting.length;
    this.#unlogged += pieces.length - fitting.length;
    const { callId, runId, record } = this.#parts;
    for (const [index, activity] of fitting.entries()) {
      const more = index < fitting.length - 1 ? { more: true as const } : {};
      record({ type: 'subagent/activity', data: { callId, runId, activity, ...more } });
    }
  }
}

/** Of a call, of the plan and of the usage only the newest state counts. */
function isReplaced(waiting: SubagentActivity, by: SubagentActivity): boolean {
  if (waiting.kind === 'tool') return by.kind === 'tool' && waiting.childCallId === by.childCallId;
  return (waiting.kind === 'plan' || waiting.kind === 'usage') && waiting.kind === by.kind;
}

function cut(activity: SubagentActivity): SubagentActivity[] {
  if (activity.kind !== 'text') return [activity];
  const pieces: SubagentActivity[] = [];
  for (let rest = activity.text; rest !== ''; ) {
    const text = sliceWhole(rest, pieceLength);
    pieces.push({ kind: 'text', text });
    rest = rest.slice(text.length);
  }
  return pieces;
}
