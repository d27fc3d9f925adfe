/** A client that stops reading for three seconds while 50 sessions stream as fast as they can, and then reads on. */
import { setTimeout as sleep } from 'node:timers/promises';
import { countWrong } from '../load/round.ts';
import { startTarget } from '../load/targets.ts';
import type { Part } from '../run.ts';

const sessions = 50;
const tokens = 10_000;
const stalledMs = 3000;

export const stallPart: Part = {
  name: 'stall',
  run: async (bench) => {
    const { agent, close } = await startTarget('shared', bench.model);
    const ids = await agent.newSessions(sessions);
    const flowing = new Promise<void>((resolve) => {
      // Words, not updates: those that wait share one.
      let words = 0;
      agent.onText = (_sessionId, text) => {
        words += text.split(' ').length - 1;
        if (words > (sessions * tokens) / 5) resolve();
      };
    });
    const ends = Promise.all(ids.map((id) => agent.prompt(id, { tokens })));
    await flowing;
    agent.onText = undefined;
    agent.pause();
    const before = agent.pssMb();
    const seen = agent.updates;
    let most = before;
    for (const end = performance.now() + stalledMs; performance.now() < end; await sleep(50)) most = Math.max(most, agent.pssMb());
    // What had been read before the pause may still be handed over, but no more than that.
    const readMeanwhile = agent.updates - seen;
    agent.resume();
    await ends;
    bench.check(countWrong(agent, ids, tokens), 'texts after a stall');
    await close();
    const growth = most - before;
    bench.figure({
      what: `client reads nothing for ${stalledMs / 1000} s, ${sessions} sessions at full speed: growth MB (${sessions * tokens} words, all there and in order)`,
      target: '≤ 16',
      measured: growth.toFixed(1),
      holds: growth <= 16,
      values: { growthMb: growth, updatesWhilePaused: readMeanwhile },
    });
  },
};
