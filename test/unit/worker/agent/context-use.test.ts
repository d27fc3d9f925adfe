/** What the log says of the window and the cost after each step, whatever ends it. */
import t from 'tap';
import type { ContextUse } from '../../../../src/shared/events.ts';
import { AgentRig, assertLegal, call, hang, prompt, say, tool, usage } from './agent-rig.ts';

const prices = { input: 1, output: 2, cacheRead: 0.5 };
const contexts = (rig: AgentRig): (ContextUse | undefined)[] => rig.of('step/end').map(({ context }) => context);
const echo = tool('echo', async () => ({ text: 'x'.repeat(4000), isError: false }));

t.test('each step says how full the window is with its results, and what the session has cost', async (t) => {
  const rig = new AgentRig([call(['echo', {}]), say('Done.', { usage: usage(3000, 30) })], {
    tools: [echo],
    contextWindow: 10_000,
    settings: { prices },
  });
  const [first] = rig.script;
  rig.script[0] = async (turn) => ({ ...(await first!(turn)), usage: usage(2000, 20) });
  await rig.agent.send(prompt('Go on '.repeat(400)));
  const [afterTool, afterAnswer] = contexts(rig);
  t.match(afterTool, { size: 10_000, costUsd: 0.00204 });
  t.match(afterAnswer, { size: 10_000, costUsd: 0.0051 });
  t.ok(afterTool!.used > 2000, 'with the result of the tool');
  t.ok(Math.abs(afterAnswer!.used - 3000) < 50, `about what the provider counted: ${afterAnswer!.used}`);
  for (const context of contexts(rig)) t.ok(Number.isInteger(context?.used) && context!.used <= context!.size);
  assertLegal(rig);
  const again = rig.reopened([say('More.', { usage: usage(3100, 10) })]);
  await again.agent.send(prompt('More'));
  t.equal(contexts(again).at(-1)?.costUsd, 0.00822, 'of all turns, also in a session that was reopened');
});

t.test('a step that is cut short says so too; without prices there is no cost, and more than all never fills the window', async (t) => {
  const rig = new AgentRig([hang('y'.repeat(20_000))], { contextWindow: 1024 });
  const ended = rig.agent.send(prompt('Go on'));
  await rig.until(() => rig.hanging === 1);
  rig.agent.cancel();
  t.equal((await ended).reason.kind, 'cancelled');
  t.same(contexts(rig), [{ used: 1024, size: 1024 }]);
  assertLegal(rig);
});

t.test('a summary says how full the window is with it in place', async (t) => {
  const rig = new AgentRig([say('Fine.', { usage: usage(2500, 10) }), say('In short.', { usage: usage(2600, 5) }), say('On.')], {
    contextWindow: 3000,
    settings: { prices },
  });
  await rig.agent.send(prompt('z '.repeat(2500)));
  await rig.agent.send(prompt('And now?'));
  const [compacted] = rig.of('history/compacted');
  t.equal(compacted?.summary, 'In short.');
  const before = contexts(rig)[0]!.used;
  const { used, size, costUsd } = compacted!.context!;
  t.ok(used < before / 2 && used > 0, `${before} → ${used}`);
  t.equal(size, 3000);
  t.equal(costUsd, 0.00513, 'the summary is paid for');
  t.ok(contexts(rig).at(-1)!.used >= used);
});
