/** What was measured as rows: medians, and quotients over pairs of rounds. */
import { median, medianRatio, percentile } from '../load/statistics.ts';
import type { PeerRow } from '../run.ts';
import type { AgentRound } from './agent-round.ts';
import type { Measured } from './contest.ts';

export interface RowSize {
  readonly sessions: number;
  readonly tokens: number;
}

/** Two rows: as fast as it comes, and with 5 ms between two words. `ours` is what was measured in turns with it. */
export function rowsOf(measured: Measured, ours: Measured, size: RowSize): PeerRow[] {
  return [
    rowOf(measured, { ...size, delayMs: 0, rounds: measured.fast, ours, oursRounds: ours.fast }),
    rowOf(measured, { ...size, delayMs: 5, rounds: measured.paced, ours, oursRounds: ours.paced }),
  ];
}

interface Load extends RowSize {
  readonly delayMs: number;
  readonly rounds: readonly AgentRound[];
  readonly ours: Measured;
  readonly oursRounds: readonly AgentRound[];
}

function rowOf(measured: Measured, { sessions, tokens, delayMs, rounds, ours, oursRounds }: Load): PeerRow {
  const { contestant, initializeMs, newMs, pssMb, cancelMs, exitMs } = measured;
  const ratio = (of: (round: AgentRound) => number): number => medianRatio(rounds.map(of), oursRounds.map(of));
  const first = (key: 'p50' | 'p99'): number => median(rounds.map((round) => round.firstTokenMs[key]));
  return {
    agent: contestant.agent,
    version: contestant.version,
    runtime: contestant.runtime,
    sessions,
    tokens,
    delayMs,
    initializeMs,
    newSessionMs: { p50: percentile(newMs, 50), p99: percentile(newMs, 99) },
    pssMb,
    processes: measured.processes,
    coldMs: measured.cold.totalMs,
    totalMs: rounds.map(({ totalMs }) => totalMs),
    cpuUsPerToken: rounds.map(({ cpuUs }) => cpuUs),
    firstTokenMs: { p50: first('p50'), p99: first('p99') },
    ...(cancelMs === undefined ? {} : { cancelMs }),
    exitMs,
    toOurs: {
      total: ratio(({ totalMs }) => totalMs),
      cpu: ratio(({ cpuUs }) => cpuUs),
      memory: pssMb.after / ours.pssMb.after,
      firstToken: ratio(({ firstTokenMs }) => firstTokenMs.p50),
      initialize: medianRatio(initializeMs, ours.initializeMs),
    },
    toModel: {
      kbPerPrompt: median(rounds.map(({ kbPerPrompt }) => kbPerPrompt)),
      ownPerPrompt: median(rounds.map(({ ownPerPrompt }) => ownPerPrompt)),
    },
    wrong: wrongIn(measured),
  };
}

/** Of all rounds, the cold one too. */
export function wrongIn({ cold, fast, paced }: Measured): number {
  return [cold, ...fast, ...paced].reduce((sum, { wrong }) => sum + wrong, 0);
}

/** What was given in place of the first wrong text. */
export function firstInstead({ cold, fast, paced }: Measured): string | undefined {
  return [cold, ...fast, ...paced].find(({ instead }) => instead !== undefined)?.instead;
}

/** Ours ran beside every other one: all of it as one. */
export function joined(all: readonly Measured[]): Measured {
  const [first] = all;
  if (first === undefined) throw new Error('nothing was measured');
  const mid = (of: (one: Measured) => number): number => median(all.map(of));
  const cancels = all.flatMap(({ cancelMs }) => cancelMs ?? []);
  return {
    contestant: first.contestant,
    initializeMs: all.flatMap(({ initializeMs }) => initializeMs),
    newMs: all.flatMap(({ newMs }) => newMs),
    pssMb: { idle: mid(({ pssMb }) => pssMb.idle), open: mid(({ pssMb }) => pssMb.open), after: mid(({ pssMb }) => pssMb.after) },
    processes: Math.max(...all.map(({ processes }) => processes)),
    cold: all.toSorted((a, b) => a.cold.totalMs - b.cold.totalMs)[Math.floor(all.length / 2)]!.cold,
    fast: all.flatMap(({ fast }) => fast),
    paced: all.flatMap(({ paced }) => paced),
    cancelMs:
      cancels.length === 0 ? undefined : { p50: median(cancels.map(({ p50 }) => p50)), max: Math.max(...cancels.map(({ max }) => max)) },
    exitMs: mid(({ exitMs }) => exitMs),
    notes: all.flatMap(({ notes }) => notes),
  };
}
