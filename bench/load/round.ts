/**
 * One round of load: every session gets one prompt at the same moment; the round ends with the last answer.
 */
import { tokenText } from '../../test/support/answer-plan.ts';
import type { AgentProcess } from './agent-process.ts';
import { percentile } from './statistics.ts';
import { type CpuSplit, cpuBetween } from './thread-cpu.ts';

export interface RoundResult {
  readonly totalMs: number;
  readonly firstTokenMs: { readonly p50: number; readonly p99: number };
  /** Microseconds for each token. */
  readonly cpuUs: CpuSplit;
  /** Sessions whose text was not the planned one. */
  readonly wrong: number;
}

export interface RoundLoad {
  readonly tokens: number;
  readonly delayMs: number;
}

export async function runRound(agent: AgentProcess, sessionIds: readonly string[], load: RoundLoad): Promise<RoundResult> {
  agent.sessions.clear();
  const before = agent.cpu.read();
  const start = performance.now();
  const reasons = await Promise.all(sessionIds.map((sessionId) => agent.prompt(sessionId, load)));
  const totalMs = performance.now() - start;
  const cpuUs = cpuBetween(before, agent.cpu.read(), 1000 / (sessionIds.length * load.tokens));
  const firsts = [...agent.sessions.values()].map((session) => session.firstTokenAt - start);
  const unfinished = reasons.filter((reason) => reason !== 'end_turn').length;
  return {
    totalMs,
    firstTokenMs: { p50: percentile(firsts, 50), p99: percentile(firsts, 99) },
    cpuUs,
    wrong: Math.max(unfinished, countWrong(agent, sessionIds, load.tokens)),
  };
}

/**
 * Each session must have the numbered words of the plan before its answer, in as many updates as there are words at most: words that
 * come while earlier ones are unwritten share an update.
 */
export function countWrong(agent: AgentProcess, sessionIds: readonly string[], tokens: number): number {
  const expected = Array.from({ length: tokens }, (_, index) => tokenText(index)).join('');
  return sessionIds.filter((id) => {
    const session = agent.sessions.get(id);
    return session?.text !== expected || session.tokens > tokens;
  }).length;
}
