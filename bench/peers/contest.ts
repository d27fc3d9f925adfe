/**
 * Some agents at one number of sessions, in turns: each round is run by all of them, one after another, each going first as often as the
 * others. So what disturbs the machine disturbs all alike, and what is compared are pairs of rounds.
 */
import { type AgentRound, agentRound, cancelRound, type CancelTimes, untilQuiet } from './agent-round.ts';
import type { Contestant } from './contestants.ts';
import type { RunningAgent } from './running-agent.ts';
import type { WireProcess } from './wire/wire-process.ts';
import type { Order } from './wire/wire-request.ts';

/** All that was measured of one agent at one number of sessions. */
export interface Measured {
  readonly contestant: Contestant;
  readonly initializeMs: readonly number[];
  readonly newMs: readonly number[];
  readonly pssMb: { readonly idle: number; readonly open: number; readonly after: number };
  readonly processes: number;
  readonly cold: AgentRound;
  /** As fast as it comes. */
  readonly fast: readonly AgentRound[];
  /** With 5 ms between two words. */
  readonly paced: readonly AgentRound[];
  readonly cancelMs: CancelTimes | undefined;
  readonly exitMs: number;
  /** What could not be measured, and why. */
  readonly notes: readonly string[];
}

export interface Dropped {
  readonly contestant: Contestant;
  readonly why: string;
}

export interface ContestPlan {
  readonly sessions: number;
  readonly tokens: number;
  /** Warm rounds as fast as it comes; fewer when they are slow. */
  readonly rounds: number;
  readonly pacedRounds: number;
  /** How often each is started for the time of `initialize` alone. */
  readonly extraStarts: number;
  /** Which of them begins. */
  readonly shift: number;
}

/** A round longer than this is not repeated. */
const slowRoundMs = 10_000;
/** After a cold round longer than this there is no warm one: it is taken for both. */
const slowColdMs = 15_000;
/** Paced rounds are not repeated once they have taken so long together. */
const longestPacedMs = 6000;
const pacedMs = 5;

interface Series {
  readonly order: Order;
  readonly most: number;
  readonly untilMs: number;
}

class Entrant {
  readonly contestant: Contestant;
  readonly initializeMs: number[] = [];
  readonly newMs: number[] = [];
  readonly sessions: string[] = [];
  readonly pssMb = { idle: Number.NaN, open: Number.NaN, after: Number.NaN };
  readonly cold: AgentRound[] = [];
  readonly fast: AgentRound[] = [];
  readonly paced: AgentRound[] = [];
  readonly notes: string[] = [];
  cancelMs: CancelTimes | undefined;
  exitMs = Number.NaN;
  agent: RunningAgent | undefined;
  failure: string | undefined;

  constructor(contestant: Contestant) {
    this.contestant = contestant;
  }

  get running(): RunningAgent {
    if (this.agent === undefined) throw new Error('it does not run');
    return this.agent;
  }
}

/** Gives what was measured of those that came through, in the order of `contestants`, and the others with their reasons. */
export async function contest(
  contestants: readonly Contestant[],
  plan: ContestPlan,
  model: WireProcess,
): Promise<{ readonly measured: Measured[]; readonly dropped: Dropped[] }> {
  const entrants = contestants.map((one) => new Entrant(one));
  try {
    await runAll(entrants, plan, model);
  } finally {
    // Only what has failed still runs by now.
    for (const { agent } of entrants) await agent?.tree.end();
  }
  const dropped = entrants.flatMap(({ contestant, failure }) => (failure === undefined ? [] : [{ contestant, why: failure }]));
  return { measured: entrants.filter(({ failure }) => failure === undefined).map(measuredOf), dropped };
}

async function runAll(entrants: readonly Entrant[], plan: ContestPlan, model: WireProcess): Promise<void> {
  const { tokens, sessions } = plan;
  let turn = plan.shift;
  /** One thing for all that have not failed, in turn; the longest it took one of them. */
  const each = async (what: string, act: (entrant: Entrant) => Promise<void>): Promise<number> => {
    let longest = 0;
    const left = entrants.filter(({ failure }) => failure === undefined);
    for (const index of left.keys()) {
      const entrant = left[(index + turn) % left.length]!;
      const start = performance.now();
      await act(entrant).catch((error: unknown) => fail(entrant, what, error));
      longest = Math.max(longest, performance.now() - start);
    }
    turn += 1;
    return longest;
  };
  const round = (into: 'cold' | 'fast' | 'paced', order: Order): Promise<number> =>
    each('a round', async (entrant) => {
      const { running, sessions } = entrant;
      entrant[into].push(await agentRound(running, sessions, { order, model }));
    });
  const series = async (into: 'fast' | 'paced', { order, most, untilMs }: Series): Promise<void> => {
    for (let spent = 0, count = 0; count < most && spent < untilMs; count += 1) {
      const longest = await round(into, order);
      if (longest > slowRoundMs) return;
      spent += longest;
    }
  };

  for (let i = 0; i < plan.extraStarts; i += 1) await each('a start', startAndEnd);
  await each('the start', async (entrant) => {
    entrant.agent = await entrant.contestant.start();
    entrant.initializeMs.push(entrant.agent.initializeMs);
    await untilQuiet(entrant.agent, model);
    entrant.pssMb.idle = entrant.agent.tree.pssMb();
  });
  await each('session/new', async (entrant) => {
    await openSessions(entrant, sessions);
    await untilQuiet(entrant.running, model);
    entrant.pssMb.open = entrant.running.tree.pssMb();
  });
  const fast = { tokens, delayMs: 0 };
  if ((await round('cold', fast)) > slowColdMs) for (const entrant of entrants) entrant.fast.push(...entrant.cold);
  else await series('fast', { order: fast, most: plan.rounds, untilMs: Number.POSITIVE_INFINITY });
  await series('paced', { order: { tokens, delayMs: pacedMs }, most: plan.pacedRounds, untilMs: longestPacedMs });
  await each('memory', async (entrant) => {
    entrant.pssMb.after = entrant.running.tree.pssMb();
  });
  await each('cancel', async (entrant) => {
    const { canCancel, streams } = entrant.contestant;
    if (!canCancel) return;
    try {
      entrant.cancelMs = await cancelRound(entrant.running, entrant.sessions, { streams, model });
    } catch (error) {
      entrant.notes.push(`cancel: ${(error as Error).message}`);
    }
  });
  await each('the end', async (entrant) => {
    entrant.exitMs = await entrant.running.close();
  });
}

async function startAndEnd(entrant: Entrant): Promise<void> {
  const agent = await entrant.contestant.start();
  entrant.initializeMs.push(agent.initializeMs);
  // Not its own end: that is measured elsewhere, and some take long.
  await agent.tree.end();
}

async function openSessions(entrant: Entrant, count: number): Promise<void> {
  const { running } = entrant;
  const open = async (): Promise<void> => {
    while (entrant.sessions.length + opening < count) {
      opening += 1;
      const start = performance.now();
      const session = await running.newSession();
      opening -= 1;
      entrant.newMs.push(performance.now() - start);
      entrant.sessions.push(session);
    }
  };
  let opening = 0;
  await Promise.all(Array.from({ length: running.together }, open));
}

async function fail(entrant: Entrant, what: string, error: unknown): Promise<void> {
  const said = entrant.agent?.stderrTail() ?? '';
  entrant.failure = `${what}: ${error instanceof Error ? error.message : String(error)}${said === '' ? '' : `; it said: ${said}`}`;
  await entrant.agent?.tree.end();
}

function measuredOf(entrant: Entrant): Measured {
  const { contestant, initializeMs, newMs, pssMb, cold, fast, paced, cancelMs, exitMs, notes, running } = entrant;
  return {
    contestant,
    initializeMs,
    newMs,
    pssMb,
    processes: running.tree.mostProcesses,
    cold: cold[0]!,
    fast,
    paced,
    cancelMs,
    exitMs,
    notes,
  };
}
