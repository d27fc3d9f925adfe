/** Counts what the attempts of a run came to, those of earlier runs of the same file included. */
import { addCost, addUsage } from './agent/agent-answer.ts';
import type { JobResult, JobUsage } from './job-result.ts';
import type { RunOutcome, StopCause } from './run-event.ts';

const noUsage: JobUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 0, toolCalls: 0 };

export class RunTotals {
  readonly #byStatus = new Map<string, number>();
  #count = 0;
  #usage: JobUsage | undefined;
  #costUsd: number | undefined;

  get count(): number {
    return this.#count;
  }

  get costUsd(): number {
    return this.#costUsd ?? 0;
  }

  add({ status, usage, costUsd }: Pick<JobResult, 'status' | 'usage' | 'costUsd'>): void {
    this.#count += 1;
    this.#byStatus.set(status, (this.#byStatus.get(status) ?? 0) + 1);
    this.#usage = addUsage(this.#usage, usage);
    this.#costUsd = addCost(this.#costUsd, costUsd);
  }

  outcome(facts: { total: number; invalid: number; wallMs: number; stopped: StopCause | undefined }): RunOutcome {
    return {
      total: facts.total,
      byStatus: Object.fromEntries(this.#byStatus),
      notRun: facts.total - this.#count,
      wallMs: facts.wallMs,
      usage: this.#usage ?? noUsage,
      ...(this.#costUsd === undefined ? {} : { costUsd: this.#costUsd }),
      ...(facts.invalid === 0 ? {} : { invalid: facts.invalid }),
      ...(facts.stopped === undefined ? {} : { stopped: facts.stopped }),
    };
  }
}
