/**
 * What a run has come to so far, kept up event by event. Each event costs the same however many jobs there are.
 */
import type { JobResult, JobStatus, JobUsage } from '../job-result.ts';
import type { JobState, RunEvent } from '../run-event.ts';
import { RateWindow } from './rate-window.ts';

export interface RunningJob {
  readonly key: string;
  /** When it left the queue, epoch milliseconds. */
  readonly since: number;
  state: JobState;
  tries: number;
}

export interface UsageTotals {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  reasoningTokens: number;
  steps: number;
  toolCalls: number;
  guessedTokens: number;
  /** Of subagents, beside the rest. */
  readonly subagents: { inputTokens: number; outputTokens: number; cacheReadTokens: number; reasoningTokens: number };
}

export function noTotals(): UsageTotals {
  const none = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0 };
  return { ...none, steps: 0, toolCalls: 0, guessedTokens: 0, subagents: { ...none } };
}

export function addUsage(totals: UsageTotals, usage: JobUsage): void {
  totals.inputTokens += usage.inputTokens;
  totals.outputTokens += usage.outputTokens;
  totals.cacheReadTokens += usage.cacheReadTokens;
  totals.reasoningTokens += usage.reasoningTokens;
  totals.steps += usage.steps;
  totals.toolCalls += usage.toolCalls;
  totals.guessedTokens += usage.guessedTokens ?? 0;
  const { subagents } = usage;
  if (subagents === undefined) return;
  totals.subagents.inputTokens += subagents.inputTokens;
  totals.subagents.outputTokens += subagents.outputTokens;
  totals.subagents.cacheReadTokens += subagents.cacheReadTokens;
  totals.subagents.reasoningTokens += subagents.reasoningTokens;
}

const progressWindowMs = 10_000;
/** Usage comes in lumps, a turn each, so that a short window would jump. */
const usageWindowMs = 60_000;
const charsPerToken = 4;

export class RunTally {
  startedAt = 0;
  agent = '';
  concurrency = 1;
  /** Attempts of this run, and those that were done before it. */
  total = 0;
  doneBefore = 0;
  ended = 0;
  retries = 0;
  draining: string | undefined;
  readonly byStatus = new Map<JobStatus, number>();
  readonly usage = noTotals();
  costUsd: number | undefined;
  /** Oldest first. */
  readonly running = new Map<string, RunningJob>();
  last: JobResult | undefined;
  /** Durations of what ended, in all. */
  endedMs = 0;
  readonly #progress = new RateWindow(progressWindowMs);
  readonly #output = new RateWindow(usageWindowMs);
  /** Keys whose turns said what they used, and what they cost. */
  readonly #counted = new Set<string>();
  readonly #costed = new Set<string>();
  readonly #tries = new Map<string, number>();

  get waiting(): number {
    return Math.max(0, this.total - this.ended - this.running.size);
  }

  apply(event: RunEvent): void {
    switch (event.type) {
      case 'run/start':
        this.startedAt = event.time;
        this.total = event.total;
        this.doneBefore = event.done;
        this.concurrency = Math.max(1, event.concurrency);
        this.agent = event.agent;
        return;
      case 'job/state':
        this.#setState(event.key, event.state, event.time);
        return;
      case 'job/turn':
        this.#addTurn(event);
        return;
      case 'job/progress':
        this.#progress.add(event.time, event.chars);
        return;
      case 'job/retry':
        this.retries += 1;
        this.running.delete(event.key);
        this.#tries.set(event.key, event.tries);
        return;
      case 'job/end':
        this.#end(event.result);
        return;
      case 'run/draining':
        this.draining = event.why;
        return;
      case 'run/end':
        return;
    }
  }

  count(status: JobStatus): number {
    return this.byStatus.get(status) ?? 0;
  }

  /** How many jobs are in which state. */
  states(): Record<JobState, number> {
    const counts = { waiting: this.waiting, preparing: 0, running: 0, checking: 0, ended: this.ended };
    for (const job of this.running.values()) counts[job.state] += 1;
    return counts;
  }

  /** Output tokens a second; `exact` when providers counted them, else guessed from the text that was shown. */
  tokenRate(now: number): { readonly perSecond: number; readonly exact: boolean } {
    const chars = this.#progress.perSecond(now);
    return chars > 0 ? { perSecond: chars / charsPerToken, exact: false } : { perSecond: this.#output.perSecond(now), exact: true };
  }

  /** Milliseconds until everything has ended if it goes on as it did; `undefined` before anything has ended. */
  remainingMs(now: number): number | undefined {
    if (this.ended === 0) return undefined;
    const mean = this.endedMs / this.ended;
    let left = this.draining === undefined ? this.waiting * mean : 0;
    for (const job of this.running.values()) left += Math.max(0, mean - (now - job.since));
    // Fewer jobs than places: the slowest place decides, so that nothing is divided.
    const places = Math.max(1, Math.min(this.concurrency, this.waiting + this.running.size));
    return left / places;
  }

  #setState(key: string, state: JobState, time: number): void {
    if (state === 'waiting' || state === 'ended') {
      this.running.delete(key);
      return;
    }
    const job = this.running.get(key);
    if (job === undefined) this.running.set(key, { key, since: time, state, tries: this.#tries.get(key) ?? 1 });
    else job.state = state;
  }

  #addTurn({ key, time, usage, costUsd }: Extract<RunEvent, { type: 'job/turn' }>): void {
    if (costUsd !== undefined) {
      this.#costed.add(key);
      this.costUsd = (this.costUsd ?? 0) + costUsd;
    }
    if (usage === undefined) return;
    this.#counted.add(key);
    addUsage(this.usage, usage);
    this.#output.add(time, usage.outputTokens);
  }

  #end(result: JobResult): void {
    this.running.delete(result.key);
    this.#tries.delete(result.key);
    this.ended += 1;
    this.endedMs += result.times.totalMs;
    this.last = result;
    this.byStatus.set(result.status, this.count(result.status) + 1);
    // What turns have said stands, as it has the tries before this one in it.
    if (!this.#counted.delete(result.key) && result.usage !== undefined) addUsage(this.usage, result.usage);
    if (!this.#costed.delete(result.key) && result.costUsd !== undefined) this.costUsd = (this.costUsd ?? 0) + result.costUsd;
  }
}
