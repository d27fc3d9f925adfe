/** Children that write far too much: how their run ends, and that this process does not keep what they wrote. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { badProvider, newsWhere, SubagentRig } from '../support/subagent-rig.ts';

t.setTimeout(60_000);

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Memory that is in use, in MB. */
async function usedMb(): Promise<number> {
  // What the first round frees outside the heap is swept by the second.
  collectGarbage();
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024 / 1024;
}

t.before(async () => {
  // The client's library is loaded once: not to be counted.
  const rig = new SubagentRig(t, [badProvider('good')]);
  await rig.run();
});

for (const [behaviour, diagnostic] of [
  ['floods', /it floods its output/],
  ['huge-line', /it wrote a line of more than 32 MB/],
  ['floods-requests', /said nothing for 700 ms/],
] as const) {
  t.test(`a child that does this is ended with an error, and little of it is kept: ${behaviour}`, async (t) => {
    const idleTimeoutMs = behaviour === 'floods-requests' ? 700 : 0;
    const rig = new SubagentRig(t, [badProvider(behaviour, { idleTimeoutMs, disposeEofGraceMs: 200 })]);
    const before = await usedMb();
    const request = await rig.start();
    const { result } = await newsWhere(rig.broker, request, (news) => news.result !== undefined);
    t.match(result, { stopReason: 'error', diagnostic });
    t.ok((result?.output.length ?? 0) <= 1024 * 1024 + 100);
    const kept = (await usedMb()) - before;
    t.ok(kept < 8, `${kept.toFixed(1)} MB are kept`);
    await rig.broker.disposeSubagent('s1', request.runId);
  });
}
