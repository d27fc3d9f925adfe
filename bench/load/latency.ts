/**
 * How long a delta takes from the model server to the client: each carries the time at which it was sent.
 *
 * Both ends read the machine's one monotonic clock.
 */
import { monotonicMs } from '../../test/support/monotonic.ts';
import type { AgentProcess } from './agent-process.ts';

/**
 * Collects the milliseconds of every delta of a round: `sessionIds` stream `tokens` deltas each, `delayMs` apart. `steadyMs` are those
 * of deltas sent later than half a second after the round began: before that, all turns start at once.
 */
export async function stampedRound(
  agent: AgentProcess,
  sessionIds: readonly string[],
  load: { readonly tokens: number; readonly delayMs: number },
): Promise<{ readonly latenciesMs: number[]; readonly steadyMs: number[]; readonly wrong: number }> {
  const latenciesMs: number[] = [];
  const steadyMs: number[] = [];
  const steadyFrom = monotonicMs() + 500;
  const lost = new Map(sessionIds.map((id) => [id, load.tokens]));
  agent.onText = (sessionId, text, at) => {
    for (const stamp of text.trim().split(' ')) {
      const sentAt = Number(stamp);
      latenciesMs.push(at - sentAt);
      if (sentAt >= steadyFrom) steadyMs.push(at - sentAt);
      lost.set(sessionId, (lost.get(sessionId) ?? 0) - 1);
    }
  };
  await Promise.all(sessionIds.map((id) => agent.prompt(id, { ...load, stamp: true })));
  agent.onText = undefined;
  const notNumbers = latenciesMs.filter((ms) => !Number.isFinite(ms)).length;
  return { latenciesMs, steadyMs, wrong: notNumbers + [...lost.values()].filter((left) => left !== 0).length };
}
