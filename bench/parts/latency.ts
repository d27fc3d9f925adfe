/** From a delta of the model to its frame at the client: 200 sessions × 50 deltas a second, shared and the floor in turns. */
import { stampedRound } from '../load/latency.ts';
import { median, percentile, ratioRange } from '../load/statistics.ts';
import { startTarget } from '../load/targets.ts';
import type { Part } from '../run.ts';

const sessions = 200;
const load = { tokens: 90, delayMs: 20 };
const rounds = 5;

export const latencyPart: Part = {
  name: 'latency',
  run: async (bench) => {
    const targets = [await startTarget('floor', bench.model), await startTarget('shared', bench.model)] as const;
    const ids = [await targets[0].agent.newSessions(sessions), await targets[1].agent.newSessions(sessions)] as const;
    const p50s: [number[], number[]] = [[], []];
    const p99s: [number[], number[]] = [[], []];
    const startP99s: [number[], number[]] = [[], []];
    for (let round = -1; round < rounds; round += 1) {
      for (const index of [0, 1] as const) {
        const { latenciesMs, steadyMs, wrong } = await stampedRound(targets[index].agent, ids[index], load);
        bench.check(wrong, `${targets[index].name}: stamped deltas`);
        // The round before the first warms up.
        if (round < 0) continue;
        p50s[index].push(percentile(steadyMs, 50));
        p99s[index].push(percentile(steadyMs, 99));
        startP99s[index].push(percentile(latenciesMs, 99));
      }
    }
    for (const target of targets) await target.close();
    const [floor50, ours50] = [median(p50s[0]), median(p50s[1])];
    const [floor99, ours99] = [median(p99s[0]), median(p99s[1])];
    bench.figure({
      what: `delta → frame, ${sessions} sessions × 50/s, once all turns run: p50 / p99 ms (floor ${floor50.toFixed(2)} / ${floor99.toFixed(1)})`,
      target: '≤ 0.5 / ≤ 10',
      measured: `${ours50.toFixed(2)} / ${ours99.toFixed(1)}`,
      toFloor: ours50 / floor50,
      toFloorRange: ratioRange(p50s[1], p50s[0]),
      holds: ours50 <= 0.5 && ours99 <= 10,
      values: { p50: ours50, p99: ours99, floorP50: floor50, floorP99: floor99 },
    });
    const [floorStart, oursStart] = [median(startP99s[0]), median(startP99s[1])];
    bench.figure({
      what: `the same with the first half second, in which ${sessions} turns start at once: p99 ms (floor ${floorStart.toFixed(1)})`,
      target: '–',
      measured: oursStart.toFixed(1),
      toFloor: oursStart / floorStart,
      toFloorRange: ratioRange(startP99s[1], startP99s[0]),
      values: { p99: oursStart, floorP99: floorStart },
    });
  },
};
