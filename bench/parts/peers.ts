/** The same work for ours and for agents that others wrote, in turns; beside it the floor, everything in one thread, and a process per session. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { median } from '../load/statistics.ts';
import { allPeers } from '../peers/all-peers.ts';
import { contest, type ContestPlan, type Measured } from '../peers/contest.ts';
import { type Contestant, ownContestant, ownNames, ours, peerContestant, type Surroundings } from '../peers/contestants.ts';
import { firstInstead, joined, rowsOf, wrongIn } from '../peers/peer-rows.ts';
import { missing, peersFolder } from '../peers/peers-folder.ts';
import { readPeersOptions } from '../peers/peers-options.ts';
import { peersHead, peersLine } from '../peers/peers-table.ts';
import { killAllTreesNow } from '../peers/process-tree.ts';
import type { RunningAgent } from '../peers/running-agent.ts';
import { startWireProcess, type WireProcess } from '../peers/wire/wire-process.ts';
import { orderText } from '../peers/wire/wire-request.ts';
import type { BenchRun, Part, PeerRow } from '../run.ts';

const tokens = 200;
/** What ours is meant to be ahead of each of the others, in CPU and memory at 200 sessions. */
const aheadAt = 200;
const ahead = 3;
/** One process of a session each. */
const processMb = 70;
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export const peersPart: Part = {
  name: 'peers',
  onlyFull: true,
  run: async (bench) => {
    const parent = join(peersFolder(), 'runs');
    mkdirSync(parent, { recursive: true });
    const scratch = mkdtempSync(join(parent, 'run-'));
    const clean = (): void => {
      killAllTreesNow();
      rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
    };
    const stop = (): void => {
      clean();
      process.exit(130);
    };
    for (const signal of signals) process.on(signal, stop);
    const model = await startWireProcess(scratch);
    try {
      await compareAll(bench, { scratch, origin: model.origin }, model);
    } finally {
      clean();
      for (const signal of signals) process.off(signal, stop);
      await model.close();
    }
  },
};

async function compareAll(bench: BenchRun, place: Surroundings, model: WireProcess): Promise<void> {
  const { names, sessions } = bench.peersOptions ?? readPeersOptions({});
  const base = ours(place);
  const together: Contestant[] = [];
  const alone: Contestant[] = [];
  for (const name of ownNames) {
    // A process for each session takes too much of the machine to stand idle beside others.
    if (names.includes(name)) (name === 'process-per-session' ? alone : together).push(await ownContestant(name, place));
  }
  for (const peer of allPeers) {
    if (!names.includes(peer.name)) continue;
    const why = missing(peer);
    if (why === undefined) alone.push(peerContestant(peer, place));
    else skip(bench, peer.name, `${why}; npm run bench:peers-install installs it`);
  }
  const groups = [...(together.length === 0 ? [] : [together]), ...alone.map((one) => [one])];
  const failed = await useHomesOnce(bench, [base, ...groups.flat()]);
  process.stdout.write(`${peersHead()}\n`);
  for (const [index, count] of sessions.entries()) {
    const start = performance.now();
    // Few sessions at a pace take their second whatever the agent does, and differ little from round to round.
    const plan = { sessions: count, tokens, rounds: 3, pacedRounds: count <= 10 ? 2 : 3, extraStarts: index === 0 ? 1 : 0, shift: index };
    await compareAt(bench, { base, groups: groups.map((group) => group.filter((one) => !failed.has(one))), plan, model });
    process.stdout.write(`  (${count} sessions: ${((performance.now() - start) / 1000).toFixed(0)} s)\n`);
  }
}

/**
 * What an agent does only at its first start and turn (a database, compiled code that it keeps) is no cost of its use. Each ends in order, since
 * some write at their end. Gives those that do not get so far.
 */
async function useHomesOnce(bench: BenchRun, contestants: readonly Contestant[]): Promise<ReadonlySet<Contestant>> {
  const failed = new Set<Contestant>();
  for (const contestant of contestants) {
    let agent: RunningAgent | undefined;
    try {
      agent = await contestant.start();
      await agent.prompt(await agent.newSession(), orderText({ tokens: 1, delayMs: 0 }));
      await agent.close();
    } catch (error) {
      await agent?.tree.end();
      failed.add(contestant);
      dropped(bench, contestant, `${(error as Error).message}; ${agent?.stderrTail() ?? ''}`);
    }
  }
  return failed;
}

interface Comparison {
  readonly base: Contestant;
  readonly groups: readonly (readonly Contestant[])[];
  readonly plan: ContestPlan;
  readonly model: WireProcess;
}

async function compareAt(bench: BenchRun, { base, groups, plan, model }: Comparison): Promise<void> {
  const oursAll: Measured[] = [];
  const rows: PeerRow[][] = [];
  for (const [index, group] of groups.entries()) {
    const fit = group.filter((one) => fits(bench, one, plan.sessions));
    if (fit.length === 0) continue;
    const { measured, dropped: fallen } = await contest([base, ...fit], { ...plan, shift: plan.shift + index }, model);
    for (const { contestant, why } of fallen) dropped(bench, contestant, `at ${plan.sessions} sessions, ${why}`);
    const beside = measured.find(({ contestant }) => contestant === base);
    if (beside === undefined) continue;
    oursAll.push(beside);
    for (const one of measured) {
      check(bench, one, plan.sessions);
      if (one === beside) continue;
      const pair = rowsOf(one, beside, plan);
      rows.push(pair);
      process.stdout.write(`${peersLine(pair)}\n`);
      for (const note of one.notes) process.stdout.write(`    ${one.contestant.agent}: ${note}\n`);
      if (plan.sessions === aheadAt && isPeer(one.contestant)) aheadFigure(bench, pair);
    }
  }
  if (oursAll.length === 0) return;
  const sum = joined(oursAll);
  const own = rowsOf(sum, sum, plan);
  process.stdout.write(`${peersLine(own)}\n`);
  bench.peers.push(...own, ...rows.flat());
}

function fits(bench: BenchRun, { agent, mostSessions }: Contestant, sessions: number): boolean {
  if (sessions > mostSessions) {
    skip(bench, agent, `not run with ${sessions} sessions: ${mostSessions} take gigabytes`);
    return false;
  }
  const freeMb = freemem() / 1024 ** 2;
  if (agent !== 'process-per-session' || freeMb > sessions * processMb) return true;
  skip(bench, agent, `${sessions} processes need about ${sessions * processMb} MB, and ${freeMb.toFixed(0)} MB are free`);
  return false;
}

function isPeer({ agent }: Contestant): boolean {
  return allPeers.some(({ name }) => name === agent);
}

/** Wrong texts of ours are faults; those of others stand in their rows. */
function check(bench: BenchRun, measured: Measured, sessions: number): void {
  const wrong = wrongIn(measured);
  if (wrong === 0) return;
  const what = `${measured.contestant.agent}, ${sessions} sessions: ${wrong} texts wrong (${firstInstead(measured) ?? ''})`;
  if (isPeer(measured.contestant)) process.stdout.write(`    ${what}\n`);
  else bench.fault(what);
}

function dropped(bench: BenchRun, contestant: Contestant, why: string): void {
  if (isPeer(contestant)) skip(bench, contestant.agent, `it failed: ${why}`);
  else bench.fault(`${contestant.agent} failed: ${why}`);
}

function skip(bench: BenchRun, agent: string, why: string): void {
  bench.skipped.push({ agent, why });
  process.stdout.write(`  ${agent} skipped: ${why}\n`);
}

function aheadFigure(bench: BenchRun, [fast, paced]: readonly PeerRow[]): void {
  if (fast === undefined || paced === undefined) return;
  const [cpu, cpuPaced, memory] = [fast.toOurs.cpu, paced.toOurs.cpu, paced.toOurs.memory];
  bench.figure({
    what: `${fast.agent}, ${aheadAt} sessions: its CPU per token (as fast as it comes; paced) and memory, × ours`,
    target: `≥ ${ahead}`,
    measured: [cpu, cpuPaced, memory].map((one) => one.toFixed(1)).join('; '),
    holds: Math.min(cpu, cpuPaced, memory) >= ahead,
    values: { cpu, cpuPaced, memory, cpuUsPerToken: median(fast.cpuUsPerToken), mb: paced.pssMb.after },
  });
}
