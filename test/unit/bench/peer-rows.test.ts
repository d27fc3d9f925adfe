/** What the comparison makes of its rounds: medians over pairs, in turns measured, and one row of all that ours has run. */
import t from 'tap';
import type { AgentRound } from '../../../bench/peers/agent-round.ts';
import type { Measured } from '../../../bench/peers/contest.ts';
import { firstInstead, joined, rowsOf, wrongIn } from '../../../bench/peers/peer-rows.ts';
import { readPeersOptions } from '../../../bench/peers/peers-options.ts';

const size = { sessions: 10, tokens: 200 };

function round(totalMs: number, cpuUs: number, more: Partial<AgentRound> = {}): AgentRound {
  return { totalMs, cpuUs, firstTokenMs: { p50: totalMs / 10, p99: totalMs / 5 }, kbPerPrompt: 30, ownPerPrompt: 0.5, wrong: 0, ...more };
}

function measured(agent: string, more: Partial<Measured> = {}): Measured {
  return {
    contestant: {
      agent,
      version: '1',
      runtime: 'Node',
      mostSessions: 1000,
      canCancel: true,
      streams: true,
      start: () => Promise.reject(new Error()),
    },
    initializeMs: [100],
    newMs: [1, 2, 30],
    pssMb: { idle: 50, open: 60, after: 100 },
    processes: 1,
    cold: round(500, 30),
    fast: [round(100, 10), round(200, 20), round(100, 10)],
    paced: [round(1000, 50)],
    cancelMs: { p50: 5, max: 8 },
    exitMs: 20,
    notes: [],
    ...more,
  };
}

t.test('a quotient is the median over pairs of rounds, so a disturbance of both cancels out', async (t) => {
  const slow = measured('slow', {
    initializeMs: [400],
    pssMb: { idle: 1, open: 1, after: 350 },
    // The second pair was disturbed: both took twice as long. The third one hit only theirs.
    fast: [round(300, 40), round(600, 80), round(900, 400)],
    paced: [round(2000, 200)],
  });
  const [fast, paced] = rowsOf(slow, measured('ours'), size);
  t.match(fast, {
    agent: 'slow',
    ...size,
    delayMs: 0,
    coldMs: 500,
    totalMs: [300, 600, 900],
    cpuUsPerToken: [40, 80, 400],
    newSessionMs: { p50: 2, p99: 30 },
    toOurs: { total: 3, cpu: 4, memory: 3.5, firstToken: 3, initialize: 4 },
  });
  t.match(paced, {
    delayMs: 5,
    totalMs: [2000],
    toOurs: { total: 2, cpu: 4 },
    cancelMs: { p50: 5, max: 8 },
    exitMs: 20,
    toModel: { kbPerPrompt: 30, ownPerPrompt: 0.5 },
    wrong: 0,
  });
});

t.test('wrong texts of all rounds are counted, and the first one is shown', async (t) => {
  const bad = measured('bad', { cold: round(1, 1, { wrong: 2 }), paced: [round(1, 1, { wrong: 1, instead: 'half of it' })] });
  t.equal(wrongIn(bad), 3);
  t.equal(firstInstead(bad), 'half of it');
  t.equal(rowsOf(bad, measured('ours'), size)[0]?.wrong, 3);
});

t.test('ours ran beside each of the others: its row holds all rounds, and is as good as itself', async (t) => {
  const all = [100, 120, 110].map((after, index) =>
    measured('ours', {
      pssMb: { idle: 1, open: 2, after },
      exitMs: after,
      cold: round(after, 1),
      cancelMs: index === 1 ? undefined : { p50: 5, max: after },
    }),
  );
  const sum = joined(all);
  t.equal(sum.fast.length, 9);
  t.equal(sum.initializeMs.length, 3);
  t.same([sum.pssMb.after, sum.exitMs, sum.cold.totalMs], [110, 110, 110]);
  t.same(sum.cancelMs, { p50: 5, max: 110 });
  t.same(rowsOf(sum, sum, size)[0]?.toOurs, { total: 1, cpu: 1, memory: 1, firstToken: 1, initialize: 1 });
});

t.test('a cancel that could not be measured is absent', async (t) => {
  t.notHas(rowsOf(measured('stubborn', { cancelMs: undefined }), measured('ours'), size)[0], { cancelMs: {} });
});

t.test('the options name agents and numbers of sessions, and nothing else passes', async (t) => {
  t.same(readPeersOptions({}).sessions, [1, 10, 50, 200]);
  t.same(readPeersOptions({ peers: 'floor,pi-acp', sessions: '1,10' }), { names: ['floor', 'pi-acp'], sessions: [1, 10] });
  t.throws(() => readPeersOptions({ peers: 'floor,nobody' }), /knows no nobody/);
  for (const sessions of ['0', '1.5', 'ten', '']) t.throws(() => readPeersOptions({ sessions }), /whole numbers/);
});
