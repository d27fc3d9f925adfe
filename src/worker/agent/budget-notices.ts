/**
 * Tells the model what it may still use: at the turn's start, when half and when four fifths of the nearest limit are
 * gone, and once when it is time to come to an end. No mark is told twice in a turn.
 *
 * Only limits that a client gave, or small ones of the server, are announced; the end is told for all of them. Notices are
 * messages at the end of the history, so what providers have cached of its beginning stays good.
 */
import type { BudgetName } from '../../shared/events.ts';
import { isTime, type Limit, limitWords } from './budget.ts';

/** Limits of the server up to these are worth a word from the start; in the limit's unit. */
const smallServerLimit: Record<BudgetName, number> = {
  steps: 50,
  'tool-calls': 100,
  'wall-time': 10 * 60_000,
  deadline: Infinity,
  tokens: Infinity,
  cost: Infinity,
};

/** Shares of a limit at which the model hears of it, the last one first. */
const marks = [
  { share: 0.8, words: 'Four fifths' },
  { share: 0.5, words: 'Half' },
] as const;

/** The share of a limit that is kept for coming to an end, and the least of it where the limit is one of time. */
const endShare = 0.1;
const endMs = 10_000;
/** A step is expected to use as much as the one before it and half more. */
const nextStepFactor = 1.5;

export interface NoticeOptions {
  readonly limits: readonly Limit[];
  /** What the model is to do at the end, as one sentence. */
  readonly lastWords: string;
}

export class BudgetNotices {
  readonly #limits: readonly Limit[];
  readonly #announced: readonly Limit[];
  readonly #lastWords: string;
  /** What was used when the last step began. */
  #before: readonly number[] | undefined;
  /** The largest share that the model knows to be gone. */
  #told = 0;
  #ending = false;

  constructor({ limits, lastWords }: NoticeOptions) {
    this.#limits = limits;
    this.#announced = limits.filter((limit) => limit.byClient || limit.max <= smallServerLimit[limit.name]);
    this.#lastWords = lastWords;
  }

  /** What the model has to hear before the step that starts now; asked once for each step. */
  next(): string | undefined {
    const used = this.#limits.map((limit) => limit.used());
    const opening = this.#before === undefined ? this.#opening() : undefined;
    const ending = this.#ending ? undefined : this.#endOf(used, this.#before ?? used);
    this.#before = used;
    if (ending === undefined) return opening ?? this.#progress();
    this.#ending = true;
    return opening === undefined ? ending : `${opening}\n${ending}`;
  }

  #opening(): string | undefined {
    const nearest = this.#nearest();
    if (nearest === undefined) return undefined;
    this.#told = shareOf(nearest);
    const names = new Set(this.#announced.map((limit) => limit.name));
    return notice(
      [
        `This turn may use at most ${leftOf(this.#announced)}.`,
        ...(names.has('steps') ? ['A step is one answer of yours with its tool calls.'] : []),
        ...(names.has('tokens') ? ['Each answer uses the tokens of all that it reads, too.'] : []),
        'The turn ends at once when a limit is reached, so keep enough for a last answer.',
      ].join(' '),
    );
  }

  #progress(): string | undefined {
    const nearest = this.#nearest();
    if (nearest === undefined || this.#ending) return undefined;
    const share = shareOf(nearest);
    const mark = marks.find((candidate) => share >= candidate.share);
    if (mark === undefined || mark.share <= this.#told) return undefined;
    this.#told = mark.share;
    return notice(`${mark.words} of the limit of ${limitWords[nearest.name]} is used. Left: ${leftOf(this.#announced)}.`);
  }

  #nearest(): Limit | undefined {
    let nearest: Limit | undefined;
    for (const limit of this.#announced) if (nearest === undefined || shareOf(limit) > shareOf(nearest)) nearest = limit;
    return nearest;
  }

  #endOf(used: readonly number[], before: readonly number[]): string | undefined {
    const ending = this.#limits.find((limit, index) => isEnding(limit, used[index] ?? 0, before[index] ?? 0));
    if (ending === undefined) return undefined;
    if (ending.name === 'steps') {
      return notice(`This is the last step of this turn: no tool call after it will be answered by you. ${this.#lastWords}`);
    }
    const told = this.#announced.includes(ending) ? this.#announced : [...this.#announced, ending];
    return notice(`This turn is near its end. Left: ${leftOf(told)}. ${this.#lastWords}`);
  }
}

/** Whether the step that starts now should be the one that comes to an end. */
function isEnding(limit: Limit, used: number, before: number): boolean {
  const left = limit.max - used;
  // Whoever gave a single step has said so; the server's own has always been silent about it.
  if (limit.name === 'steps') return left <= 1 && (used > 0 || limit.byClient);
  if (limit.name === 'tool-calls') return used > 0 && (left <= 1 || left < limit.max * endShare);
  const nextStep = (used - before) * nextStepFactor;
  const reserve = isTime(limit) ? Math.min(Math.max(endMs, limit.max * endShare), limit.max / 2) : limit.max * endShare;
  return left < Math.max(reserve, nextStep);
}

function shareOf(limit: Limit): number {
  return limit.used() / limit.max;
}

/** `5 steps, 12 tool calls, 90 seconds`; the tightest of each kind. */
function leftOf(limits: readonly Limit[]): string {
  const least = new Map<string, { readonly limit: Limit; readonly left: number }>();
  for (const limit of limits) {
    const left = Math.max(0, limit.max - limit.used());
    const kind = limitWords[limit.name];
    if (left < (least.get(kind)?.left ?? Infinity)) least.set(kind, { limit, left });
  }
  return [...least.values()].map(({ limit, left }) => amountOf(limit, left)).join(', ');
}

function amountOf(limit: Limit, left: number): string {
  switch (limit.name) {
    case 'steps':
      return counted(left, 'step');
    case 'tool-calls':
      return counted(left, 'tool call');
    case 'tokens':
      return counted(left, 'token');
    case 'cost':
      return `$${dollars(left)}`;
    case 'wall-time':
    case 'deadline':
      return counted(Math.floor(left / 1000), 'second');
    default:
      return limit.name satisfies never;
  }
}

function counted(count: number, word: string): string {
  return `${Math.floor(count)} ${word}${Math.floor(count) === 1 ? '' : 's'}`;
}

/** Two digits that count, and never more than is left. */
function dollars(left: number): string {
  const digits = left >= 1 || left === 0 ? 2 : Math.min(12, 1 - Math.floor(Math.log10(left)));
  const grain = 10 ** digits;
  return (Math.floor(left * grain) / grain).toFixed(digits);
}

/** In brackets, like all that the program says by itself in a conversation. */
function notice(text: string): string {
  return `[${text}]`;
}
