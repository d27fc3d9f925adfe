/**
 * What a turn costs by the turns before it. The model's own request grows with the conversation whoever makes it; so the floor agent,
 * which does nothing but keep its messages and send them, goes the same way beside ours, and what it needs is taken off.
 */
import { storeSession } from '../load/stored-sessions.ts';
import { startTarget, type Target } from '../load/targets.ts';
import type { BenchRun } from '../run.ts';
import { flat, Samples } from './curve.ts';
import { oneByOne, type TurnCost, turnWaves } from './turn-waves.ts';

const load = { tokens: 5, delayMs: 0 };
/**
 * One after the other: where several ran at once, short turns would share the wakes of the main thread, and long ones would not.
 */
const sessions = 4;
/** Parts of a window, each measured alone: they show the spread. */
const parts = 5;
/** No summary is to make a conversation short again. */
const flags = ['--context-window', '100000000', '--park-after-ms', '0'];

interface Costs {
  readonly cpu: Samples;
  readonly main: Samples;
  readonly time: Samples;
  readonly request: Samples;
}

export async function growthByHistory(bench: BenchRun): Promise<void> {
  await lived(bench);
  await stored(bench);
}

/** From the first turn to the last in one go, each in turn. */
async function lived(bench: BenchRun): Promise<void> {
  const windows = [
    { from: 1, to: 10 },
    { from: 26, to: 35 },
    { from: 91, to: 110 },
    { from: 281, to: 320 },
    ...(bench.full ? [{ from: 961, to: 1000 }] : []),
  ];
  const costs = newCosts();
  await withBoth(bench, {}, async (ours, floor) => {
    const [ourIds, floorIds] = [await openSessions(ours, 0), await openSessions(floor, 0)];
    let done = 0;
    for (const { from, to } of windows) {
      for (const [target, ids] of [[ours, ourIds] as const, [floor, floorIds] as const]) {
        const { wrong } = await turnWaves(target.agent, oneByOne(ids, from - 1 - done), load);
        bench.check(wrong, `growth, ${target.name}, turns up to ${from}: texts`);
      }
      await measure(bench, costs, { size: (from + to) / 2, waves: to - from + 1, ours, ourIds, floor, floorIds });
      done = to;
    }
  });
  curves(bench, costs, 'turn');
}

/** Sessions that are opened with a conversation full of tool calls. */
async function stored(bench: BenchRun): Promise<void> {
  const costs = newCosts();
  for (const turns of bench.full ? [1, 10, 30, 100, 300, 1000] : [1, 10, 100]) {
    let ids: readonly string[] = [];
    const prepare = (stateDir: string): void => {
      ids = Array.from({ length: sessions }, () => storeSession(stateDir, process.cwd(), turns));
    };
    await withBoth(bench, { prepare }, async (ours, floor) => {
      for (const sessionId of ids) await ours.agent.request('session/resume', { sessionId, cwd: process.cwd(), mcpServers: [] });
      const floorIds = await openSessions(floor, turns);
      await turnWaves(ours.agent, oneByOne(ids, 2), load);
      await turnWaves(floor.agent, oneByOne(floorIds, 2), load);
      await measure(bench, costs, { size: turns, waves: 20, ours, ourIds: ids, floor, floorIds });
    });
  }
  curves(bench, costs, 'stored turns with tool calls');
}

interface Window {
  readonly size: number;
  readonly waves: number;
  readonly ours: Target;
  readonly ourIds: readonly string[];
  readonly floor: Target;
  readonly floorIds: readonly string[];
}

/** Part by part in turns, so that what disturbs one disturbs the other. */
async function measure(bench: BenchRun, costs: Costs, { size, waves, ours, ourIds, floor, floorIds }: Window): Promise<void> {
  for (let part = 0; part < parts; part += 1) {
    const count = Math.floor(waves / parts);
    const mine = await turnWaves(ours.agent, oneByOne(ourIds, count), load);
    const least = await turnWaves(floor.agent, oneByOne(floorIds, count), load);
    bench.check(mine.wrong + least.wrong, `growth, at turn ${size}: texts`);
    costs.cpu.add(
      size,
      difference(mine, least, (cost) => cost.cpuUs.total),
    );
    costs.main.add(size, mine.cpuUs.main);
    costs.time.add(
      size,
      difference(mine, least, (cost) => cost.turnMs),
    );
    costs.request.add(size, least.cpuUs.total);
  }
}

function difference(ours: TurnCost, floor: TurnCost, of: (cost: TurnCost) => number): number {
  return of(ours) - of(floor);
}

/** Both have worked before anything is measured: what is compiled by then is compiled for all sessions. */
async function withBoth(
  bench: BenchRun,
  options: { readonly prepare?: (stateDir: string) => void },
  work: (ours: Target, floor: Target) => Promise<void>,
): Promise<void> {
  const ours = await startTarget('shared', bench.model, { ...options, flags });
  const floor = await startTarget('floor:history', bench.model);
  for (const { agent } of [ours, floor]) {
    const ids = await agent.newSessions(sessions);
    await turnWaves(agent, oneByOne(ids, 60), load);
  }
  await work(ours, floor);
  await ours.close();
  await floor.close();
}

async function openSessions({ agent }: Target, turns: number): Promise<string[]> {
  const ids: string[] = [];
  const stored = turns === 0 ? {} : { _meta: { stored: turns } };
  for (let i = 0; i < sessions; i += 1) {
    ids.push((await agent.request('session/new', { cwd: process.cwd(), mcpServers: [], ...stored })).sessionId);
  }
  return ids;
}

function newCosts(): Costs {
  return { cpu: new Samples(), main: new Samples(), time: new Samples(), request: new Samples() };
}

function curves(bench: BenchRun, { cpu, main, time, request }: Costs, over: string): void {
  bench.curve(cpu.curve({ what: 'CPU of a turn beyond that of the same request', unit: 'µs', over, most: flat }));
  bench.curve(main.curve({ what: 'main thread in a turn', unit: 'µs', over, most: flat }));
  bench.curve(time.curve({ what: 'a turn beyond the same request', unit: 'ms', over, most: flat }));
  bench.curve(request.curve({ what: 'the model request alone: CPU of the floor', unit: 'µs', over, most: 1 }));
}
