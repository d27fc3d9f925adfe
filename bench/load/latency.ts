/**
 * How long a delta takes from the model server to the client: each carries the time at which it was sent.
 *
 * Both clocks are `performance.timeOrigin + performance.now()` of two processes of one machine. They differ by some
 * microseconds, for the floor as for ours.
 */
import type { AgentProcess } from './agent-process.ts';

/** Collects the milliseconds of every delta of a round: `sessionIds` stream `tokens` deltas each, `delayMs` apart. */
export async function stampedRound(
  agent: AgentProcess,
  sessionIds: readonly string[],
  load: { readonly tokens: number; readonly delayMs: number },
): Promise<{ readonly latenciesMs: number[]; readonly wrong: number }> {
  const latenciesMs: number[] = [];
  const lost = new Map(sessionIds.map((id) => [id, load.tokens]));
  agent.onText = (sessionId, text, at) => {
    for (const stamp of text.trim().split(' ')) {
      latenciesMs.push(at - Number(stamp));
      lost.set(sessionId, (lost.get(sessionId) ?? 0) - 1);
    }
  };
  await Promise.all(sessionIds.map((id) => agent.prompt(id, { ...load, stamp: true })));
  agent.onText = undefined;
  const notNumbers = latenciesMs.filter((ms) => !Number.isFinite(ms)).length;
  return { latenciesMs, wrong: notNumbers + [...lost.values()].filter((left) => left !== 0).length };
}
