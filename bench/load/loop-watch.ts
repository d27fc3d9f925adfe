/**
 * How late the agent's main thread is while it works: asks for `_status` at fixed times, whatever became of the last question. Its
 * answer also says what the main thread measured by itself.
 */
import { monotonicMs } from '../../test/support/monotonic.ts';
import type { AgentProcess } from './agent-process.ts';
import { LatencyHistogram, type Percentiles } from './histogram.ts';

const everyMs = 50;

export interface LoopFigures {
  /** As main says: over the time since the last look, or the last ten seconds. */
  readonly p50: number;
  readonly p99: number;
  /** From the time at which a question was due to its answer. */
  readonly statusMs: Percentiles;
}

export class LoopWatch {
  readonly #agent: AgentProcess;
  readonly #answers = new LatencyHistogram();
  readonly #open = new Set<Promise<void>>();
  readonly #start = monotonicMs();
  readonly #timer: NodeJS.Timeout;
  #asked = 0;
  #lag = { p50: Number.NaN, p99: Number.NaN };

  constructor(agent: AgentProcess) {
    this.#agent = agent;
    this.#timer = setInterval(() => this.#askDue(), everyMs);
  }

  /** Fulfils with the last answer. */
  async stop(): Promise<LoopFigures> {
    clearInterval(this.#timer);
    this.#ask(monotonicMs());
    await Promise.all(this.#open);
    return { ...this.#lag, statusMs: this.#answers.percentiles() };
  }

  /** A timer of a busy client is late: what it missed is asked now, and counts from when it was due. */
  #askDue(): void {
    for (let due = this.#dueAt(); due <= monotonicMs(); due = this.#dueAt()) {
      this.#asked += 1;
      this.#ask(due);
    }
  }

  #dueAt(): number {
    return this.#start + (this.#asked + 1) * everyMs;
  }

  #ask(due: number): void {
    const answered = this.#agent.request('_status', {}).then((status) => {
      this.#answers.record(monotonicMs() - due);
      this.#lag = status.process.loopLagMs;
    });
    this.#open.add(answered);
    void answered.finally(() => this.#open.delete(answered)).catch(() => undefined);
  }
}
