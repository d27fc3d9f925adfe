/**
 * An attempt from its start to its one result: tries, and the waits between them. Never rejects.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { addCost, addUsage } from '../agent/agent-answer.ts';
import type { CommandOutcome } from '../command.ts';
import type { Attempt } from '../job.ts';
import type { JobResult, JobUsage } from '../job-result.ts';
import type { AttemptParts } from './attempt-parts.ts';
import { type TryEnd, tryAttempt } from './try-attempt.ts';

const longestDelayMs = 60_000;

/** `result` is absent when the run was stopped while the attempt waited for another try, or by what it met: then it counts as not run. */
export interface AttemptEnd {
  readonly result: JobResult | undefined;
  /** Its line belongs into the results file; a cancelled one is run again by the next run. */
  readonly isFinal: boolean;
  /** It ended in order and its agent did not say what it cost. */
  readonly costUnknown: boolean;
}

export async function runAttempt(parts: AttemptParts, attempt: Attempt): Promise<AttemptEnd> {
  const { emit, now, stop, retries } = parts;
  const startedAt = now();
  let usage: JobUsage | undefined;
  let costUsd: number | undefined;
  for (let tries = 1; ; tries += 1) {
    const end = await tryAttempt(parts, attempt);
    usage = addUsage(usage, end.session?.usage);
    costUsd = addCost(costUsd, end.session?.costUsd);
    if (end.blocked !== undefined) {
      parts.onBlocked(end.blocked);
      emit({ type: 'job/state', time: now(), key: attempt.key, state: 'waiting' });
      return { result: undefined, isFinal: false, costUnknown: false };
    }
    if (tries > retries || !mayTryAgain(end, attempt)) {
      const result = toResult(attempt, end, { startedAt, endedAt: now(), tries, usage, costUsd, model: end.session?.model ?? parts.model });
      const answered = end.session?.stopReason !== undefined;
      return { result, isFinal: !stop.isCancelled, costUnknown: answered && costUsd === undefined };
    }
    const delayMs = retryDelay(tries, parts);
    emit({ type: 'job/retry', time: now(), key: attempt.key, tries, delayMs, reason: end.verdict.error ?? end.verdict.status });
    emit({ type: 'job/state', time: now(), key: attempt.key, state: 'waiting' });
    await delay(delayMs, undefined, { signal: stop.drainSignal }).catch(() => undefined);
    if (stop.isDraining) return { result: undefined, isFinal: false, costUnknown: false };
  }
}

function mayTryAgain({ verdict, sideEffects }: TryEnd, { job }: Attempt): boolean {
  return verdict.retryable && (job.idempotent || !sideEffects);
}

/** Doubles with every try; half of it is left to chance, so that jobs that failed together do not return together. */
function retryDelay(tries: number, { retryDelayMs, random }: AttemptParts): number {
  const ceiling = Math.min(longestDelayMs, retryDelayMs * 2 ** (tries - 1));
  return Math.round(ceiling * (0.5 + random() / 2));
}

interface Facts {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly tries: number;
  readonly usage: JobUsage | undefined;
  readonly costUsd: number | undefined;
  readonly model: string | undefined;
}

function toResult(attempt: Attempt, end: TryEnd, { startedAt, endedAt, tries, usage, costUsd, model }: Facts): JobResult {
  const { job, key, repeat, seed } = attempt;
  const { verdict, session } = end;
  const present = <T extends object>(members: T): T => {
    return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
  };
  return present<JobResult>({
    version: 1,
    key,
    id: job.id,
    repeat,
    seed,
    jobHash: job.hash,
    status: verdict.status,
    text: session?.text ?? '',
    labels: job.labels,
    tries,
    times: present({
      startedAt: new Date(startedAt).toISOString(),
      endedAt: new Date(endedAt).toISOString(),
      setupMs: Math.round(end.setupMs),
      turnsMs: Math.round(session?.turnsMs ?? 0),
      checkMs: Math.round(end.check?.durationMs ?? 0),
      totalMs: endedAt - startedAt,
      ...(session?.firstUpdateMs === undefined ? {} : { firstUpdateMs: Math.round(session.firstUpdateMs) }),
    }),
    ...present({
      stopReason: session?.stopReason,
      structured: session?.structured,
      model,
      usage,
      costUsd,
      errorClass: verdict.errorClass,
      error: verdict.error,
      baseCommit: end.baseCommit,
      setup: commandResult(end.setup),
      check: commandResult(end.check),
      sessionId: session?.sessionId,
      logPath: end.logPath,
      meta: job.meta,
    }),
    ...patchMembers(end),
  } as JobResult);
}

function patchMembers({ patch }: TryEnd): Pick<JobResult, 'patch' | 'patchPath'> {
  if (patch === undefined) return {};
  return 'text' in patch ? { patch: patch.text } : { patchPath: patch.path };
}

function commandResult(outcome: CommandOutcome | undefined): JobResult['check'] {
  if (outcome === undefined) return undefined;
  const { exitCode, signal, timedOut, output, spawnError } = outcome;
  return { exitCode, signal, timedOut, output: spawnError ?? output };
}
