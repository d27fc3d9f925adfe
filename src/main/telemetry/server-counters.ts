/**
 * What the server has done since its start, as plain numbers: always counted, since counting costs nothing, and read by
 * `_status` and the metrics.
 */
import { ServerError } from '../../shared/errors.ts';
import type { TurnUsage } from '../../shared/events.ts';
import type { PermissionAnswer, TurnOutcome } from '../../shared/thread-protocol.ts';

/** Only ever grows. A turn that main stopped waiting for counts with what its thread says later; a lost thread says nothing. */
export interface Totals {
  /** Prompts answered, by stop reason; those answered with an error are under `error`. */
  readonly prompts: Readonly<Record<string, number>>;
  /** The latter, by code. */
  readonly errors: Readonly<Record<string, number>>;
  /** Model calls that were answered. */
  readonly steps: number;
  readonly toolCalls: number;
  /** Disjoint, but for `reasoning`, which is part of `output`. */
  readonly tokens: { readonly input: number; readonly cacheRead: number; readonly output: number; readonly reasoning: number };
  /** By the configured prices; `0` without. */
  readonly costUsd: number;
  /** From the start of a turn to its first text or thought; of the turns that got there. */
  readonly firstTokenMs: SumAndCount;
  /** From the start of a turn to its end; the wait for a slot is not part of it. */
  readonly turnMs: SumAndCount;
  /** By outcome: `selected`, `cancelled`, `unavailable`. */
  readonly permissionRequests: Readonly<Record<string, number>>;
  /** Session threads that ended while the server went on. */
  readonly threadLosses: number;
  /** `session/update` frames handed to the client's stream. */
  readonly updateFrames: number;
  readonly updateBytes: number;
}

/** For means: of two looks, the difference of the sums over that of the counts. */
export interface SumAndCount {
  readonly sum: number;
  readonly count: number;
}

export class ServerCounters {
  /** Told of each turn that a thread has ended. */
  onTurn: ((usage: TurnUsage) => void) | undefined;
  readonly #prompts = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  readonly #permissions = new Map<string, number>();
  #steps = 0;
  #toolCalls = 0;
  #input = 0;
  #cacheRead = 0;
  #output = 0;
  #reasoning = 0;
  #costUsd = 0;
  #firstTokenMs: SumAndCount = { sum: 0, count: 0 };
  #turnMs: SumAndCount = { sum: 0, count: 0 };
  #threadLosses = 0;
  #frames = 0;
  #bytes = 0;

  /** Counts a prompt when it is answered. */
  promptStarted(answer: Promise<{ readonly stopReason: string }>): void {
    answer.then(
      ({ stopReason }) => add(this.#prompts, stopReason),
      (error: unknown) => {
        add(this.#prompts, 'error');
        add(this.#errors, error instanceof ServerError ? error.code : 'INTERNAL');
      },
    );
  }

  /** The answer to a repeated prompt, read from the log, counts as nothing: it was counted when it ran. */
  turnEnded({ stored, usage }: TurnOutcome): void {
    if (stored === true || usage === undefined) return;
    this.#steps += usage.steps;
    this.#toolCalls += usage.toolCalls;
    this.#input += usage.inputTokens;
    this.#cacheRead += usage.cacheReadTokens;
    this.#output += usage.outputTokens;
    this.#reasoning += usage.reasoningTokens;
    this.#costUsd += usage.costUsd ?? 0;
    if (usage.firstTokenMs !== undefined) this.#firstTokenMs = plus(this.#firstTokenMs, usage.firstTokenMs);
    this.#turnMs = plus(this.#turnMs, usage.elapsedMs);
    this.onTurn?.(usage);
  }

  permissionAnswered({ outcome }: PermissionAnswer): void {
    add(this.#permissions, outcome);
  }

  threadLost(): void {
    this.#threadLosses += 1;
  }

  updatesWritten(frames: number, bytes: number): void {
    this.#frames += frames;
    this.#bytes += bytes;
  }

  totals(): Totals {
    return {
      prompts: Object.fromEntries(this.#prompts),
      errors: Object.fromEntries(this.#errors),
      steps: this.#steps,
      toolCalls: this.#toolCalls,
      tokens: { input: this.#input, cacheRead: this.#cacheRead, output: this.#output, reasoning: this.#reasoning },
      costUsd: this.#costUsd,
      firstTokenMs: this.#firstTokenMs,
      turnMs: this.#turnMs,
      permissionRequests: Object.fromEntries(this.#permissions),
      threadLosses: this.#threadLosses,
      updateFrames: this.#frames,
      updateBytes: this.#bytes,
    };
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function plus({ sum, count }: SumAndCount, ms: number): SumAndCount {
  return { sum: sum + ms, count: count + 1 };
}
