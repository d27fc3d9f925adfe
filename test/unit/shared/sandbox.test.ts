/** Which command reaches the network, and in what words that is said. */
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { commandNetwork, sandboxSummary, sandboxWords, type SandboxState } from '../../../src/shared/sandbox.ts';
import { awaitSandboxState, makeSandboxSlot, readSandboxState, writeSandboxState } from '../../../src/shared/sandbox-slot.ts';

const contained: SandboxState = { kind: 'bubblewrap', network: 'ask', version: '1' };

t.test('a command reaches the network only where the settings, a rule, or a yes to its asking give it that', async (t) => {
  const of = (network: SandboxState['network'], bound?: 'none' | 'any', asks = false, kind: SandboxState['kind'] = 'bubblewrap') =>
    commandNetwork({ kind, network }, { bound, asks });
  t.same([of('ask'), of('ask', undefined, true), of('ask', 'any'), of('ask', 'none', true)], ['off', 'on', 'on', 'off']);
  t.same([of('on'), of('on', 'none'), of('on', 'any')], ['on', 'off', 'on']);
  t.same([of('off'), of('off', 'any'), of('off', undefined, true)], ['off', 'off', 'off']);
  t.same([of('on', undefined, false, 'none'), of('off', 'any', true, 'none'), of('ask', 'none', true, 'none')], ['on', 'off', 'off']);
});

t.test('questions and the doctor speak of it in the same words', async (t) => {
  t.equal(sandboxWords(contained, 'off'), 'Runs contained: writes only in the workspace, no network.');
  t.equal(sandboxWords(contained, 'on'), 'Runs contained: writes only in the workspace, with network.');
  t.equal(sandboxWords({ kind: 'none' }, 'on'), 'Runs without a sandbox, with network.');
  t.match(
    sandboxSummary(contained),
    /^bubblewrap 1: Runs contained: writes only in the workspace, no network but where .*; no limits of .* are set$/,
  );
  t.match(sandboxSummary({ ...contained, limits: 'cgroup' }), /limits held by control groups$/);
  t.match(
    sandboxSummary({ kind: 'none', network: 'on', why: 'W', limits: 'ulimit', limitsWhy: 'L' }),
    /^none \(W\): .*with network; .*as L$/,
  );
});

t.test('a thread that waits hears of the sandbox as soon as another one knows, and not for ever', async (t) => {
  const slot = makeSandboxSlot();
  t.equal(readSandboxState(slot), undefined);
  t.equal(await awaitSandboxState(slot, 5), undefined);
  const waiting = awaitSandboxState(slot, 10_000);
  const module = new URL('../../../src/shared/sandbox-slot.js', import.meta.url).href;
  const worker = new Worker(
    `const { workerData } = require('node:worker_threads');
     import(workerData.module).then(({ writeSandboxState }) => writeSandboxState(workerData.slot, workerData.state));`,
    { eval: true, workerData: { module, slot, state: contained } },
  );
  t.teardown(() => worker.terminate());
  t.same(await waiting, contained);
  writeSandboxState(slot, { ...contained, version: '2' });
  t.equal(readSandboxState(slot)?.version, '2', 'the newest counts');
  writeSandboxState(slot, { ...contained, why: 'x'.repeat(3_000) });
  t.equal(readSandboxState(slot)?.version, '2', 'what has no room is left out');
});
