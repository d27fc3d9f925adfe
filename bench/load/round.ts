/**
 * One round of load: every session gets one prompt at the same moment; the round ends with the last answer.
 */
import type { AgentProcess } from './agent-process.ts';

export interface RoundResult {
  readonly totalMs: number;
  readonly firstTokenMs: { readonly p50: number; readonly p99: number };
  readonly cpuUsPerToken: number;
  readonly mainUsPerToken: number;
  /** Sessions whose text was not the expected one. */
  readonly wrong: number;
}

export interface RoundLoad {
  readonly tokens: number;
  readonly delayMs: number;
}

export async function runRound(agent: AgentProcess, sessionIds: readonly string[], load: RoundLoad): Promise<RoundResult> {
  agent.sessions.clear();
  const cpuBefore = agent.cpuMs();
  const mainBefore = agent.mainCpuMs();
  const start = performance.now();
  const prompt = [{ type: 'text', text: JSON.stringify(load) }];
  await Promise.all(sessionIds.map((sessionId) => agent.request('session/prompt', { sessionId, prompt })));
  const totalMs = performance.now() - start;
  const tokens = sessionIds.length * load.tokens;
  const firsts = [...agent.sessions.values()].map((session) => session.firstTokenAt - start);
  return {
    totalMs,
    firstTokenMs: { p50: percentile(firsts, 50), p99: percentile(firsts, 99) },
    cpuUsPerToken: ((agent.cpuMs() - cpuBefore) * 1000) / tokens,
    mainUsPerToken: ((agent.mainCpuMs() - mainBefore) * 1000) / tokens,
    wrong: countWrong(agent, sessionIds, load.tokens),
  };
}

/** Each session must have the same text as the first, of as many words as there were tokens. */
function countWrong(agent: AgentProcess, sessionIds: readonly string[], tokens: number): number {
  const expected = agent.sessions.get(sessionIds[0] ?? '')?.text ?? '';
  if (expected.trim().split(' ').length !== tokens) return sessionIds.length;
  return sessionIds.filter((id) => agent.sessions.get(id)?.text !== expected).length;
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}
