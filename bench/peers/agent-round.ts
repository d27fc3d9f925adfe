/**
 * One round of the comparison: every session gets one prompt at the same moment, and the round ends with the last answer. What an agent
 * still does behind its answers counts as CPU of the round, not as time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../load/statistics.ts';
import type { RunningAgent } from './running-agent.ts';
import { numberedWords } from './wire/wire-frames.ts';
import type { WireProcess } from './wire/wire-process.ts';
import { type Order, orderText } from './wire/wire-request.ts';

export interface AgentRound {
  readonly totalMs: number;
  readonly firstTokenMs: { readonly p50: number; readonly p99: number };
  /** Microseconds for each token that was ordered, of the whole process tree. */
  readonly cpuUs: number;
  /** What it has sent to the model for each prompt, with what it asked for itself. */
  readonly kbPerPrompt: number;
  /** Requests for itself, for each prompt. */
  readonly ownPerPrompt: number;
  /** Sessions whose text was not the ordered one, or whose prompt ended otherwise than it should. */
  readonly wrong: number;
  /** What the first of them was given instead. */
  readonly instead?: string;
}

const quietStepMs = 40;
/** Of CPU in one step. */
const quietCpuMs = 4;
const longestUnrestMs = 2000;

/** @throws Error when no session was answered at all */
export async function agentRound(
  agent: RunningAgent,
  sessions: readonly string[],
  { order, model }: { readonly order: Order; readonly model: WireProcess },
): Promise<AgentRound> {
  const before = await model.stats();
  const cpuBefore = agent.tree.cpuMs();
  const start = performance.now();
  const text = orderText(order);
  const ends = await Promise.all(sessions.map((session) => agent.prompt(session, text).catch((error: unknown) => error as Error)));
  const totalMs = performance.now() - start;
  if (ends.every((end) => end instanceof Error)) throw new Error(`no prompt was answered: ${(ends[0] as Error).message}`);
  const cpuMs = (await untilQuiet(agent, model)) - cpuBefore;
  const after = await model.stats();
  const expected = numberedWords(order.tokens).join('');
  const wrong = sessions.filter((session, index) => ends[index] !== 'end_turn' || agent.heard(session)?.text !== expected);
  const firsts = sessions.map((session) => (agent.heard(session)?.firstAt ?? Number.NaN) - start).filter((ms) => !Number.isNaN(ms));
  return {
    totalMs,
    firstTokenMs: { p50: percentile(firsts, 50), p99: percentile(firsts, 99) },
    cpuUs: (cpuMs * 1000) / (sessions.length * order.tokens),
    kbPerPrompt: (after.bytesRead - before.bytesRead) / 1024 / sessions.length,
    ownPerPrompt: (after.own - before.own) / sessions.length,
    wrong: wrong.length,
    ...(wrong[0] === undefined ? {} : { instead: insteadOf(agent.heard(wrong[0])?.text, ends[sessions.indexOf(wrong[0])]) }),
  };
}

function insteadOf(text: string | undefined, end: string | Error | undefined): string {
  const shown = text === undefined ? 'nothing' : `${text.length} characters, ${JSON.stringify(text.slice(0, 80))}`;
  return `${shown}, ended with ${end instanceof Error ? end.message : (end ?? 'nothing')}`;
}

/** Waits until an agent does no more than breathe, 2 s at most; milliseconds of CPU that it has used until then. */
export async function untilQuiet({ tree }: RunningAgent, model: WireProcess): Promise<number> {
  const deadline = performance.now() + longestUnrestMs;
  for (let last = tree.cpuMs(); ; ) {
    await sleep(quietStepMs);
    const now = tree.cpuMs();
    const isQuiet = now - last < quietCpuMs && (await model.stats()).activeStreams === 0;
    if (isQuiet || performance.now() > deadline) return now;
    last = now;
  }
}

export interface CancelTimes {
  readonly p50: number;
  readonly max: number;
}

const cancelled = 10;
const allStreamMs = 30_000;
const cancelLimitMs = 10_000;

/**
 * Cancels ten sessions, or as many as there are, one after another while they stream: from the notification to the answer of the prompt.
 *
 * @param streams whether the agent shows that it streams
 * @throws Error when a turn ends otherwise than `cancelled`, or does not begin
 */
export async function cancelRound(
  agent: RunningAgent,
  sessions: readonly string[],
  { streams, model }: { readonly streams: boolean; readonly model: WireProcess },
): Promise<CancelTimes> {
  const some = sessions.slice(0, cancelled);
  const ends = some.map((session) => agent.prompt(session, orderText({ tokens: 100_000, delayMs: 20 })));
  for (const end of ends) end.catch(() => undefined); // Looked at below, in turn.
  const deadline = performance.now() + allStreamMs;
  const hasBegun = async (): Promise<boolean> =>
    streams
      ? some.every((session) => !Number.isNaN(agent.heard(session)?.firstAt ?? Number.NaN))
      : (await model.stats()).activeStreams >= some.length;
  while (!(await hasBegun())) {
    if (performance.now() > deadline) throw new Error('not all of the turns that were to be cancelled began to stream');
    await sleep(10);
  }
  const times: number[] = [];
  for (const [index, session] of some.entries()) {
    const start = performance.now();
    agent.cancel(session);
    const reason = await Promise.race([ends[index]!, sleep(cancelLimitMs, undefined, { ref: false })]);
    if (reason === undefined) throw new Error(`a cancelled turn did not end within ${cancelLimitMs / 1000} s`);
    if (reason !== 'cancelled') throw new Error(`a cancelled turn ended with ${reason}`);
    times.push(performance.now() - start);
  }
  return { p50: percentile(times, 50), max: Math.max(...times) };
}
