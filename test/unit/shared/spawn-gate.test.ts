import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { makeSpawnGateMemory, SpawnGate } from '../../../src/shared/spawn-gate.ts';

/** Another thread that is inside of the gate until the words say that it shall go. */
async function insideThread(memory: SharedArrayBuffer, words: Int32Array): Promise<Worker> {
  const gate = new URL('../../../src/shared/spawn-gate.js', import.meta.url).href;
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    void import(${JSON.stringify(gate)}).then(({ SpawnGate }) => {
      const passed = new SpawnGate(workerData.memory).pass(() => {
        parentPort.postMessage('inside');
        Atomics.wait(workerData.words, 0, 0);
        Atomics.store(workerData.words, 1, 1);
        return 'started';
      });
      parentPort.postMessage(passed);
    });`;
  const thread = new Worker(code, { eval: true, workerData: { memory, words } });
  t.same(await once(thread, 'message'), ['inside']);
  return thread;
}

t.test('an open gate lets starts through, also those that throw; a closed one none', async (t) => {
  const memory = makeSpawnGateMemory();
  const [ours, theirs] = [new SpawnGate(memory), new SpawnGate(memory)];
  t.equal(
    ours.pass(() => 7),
    7,
  );
  t.throws(
    () =>
      ours.pass(() => {
        throw new Error('no room');
      }),
    /no room/,
  );
  t.ok(theirs.close(60_000), 'nothing is under way');
  t.equal(
    ours.pass(() => t.fail('it was started')),
    undefined,
  );
  t.ok(theirs.close(60_000), 'a start that was refused is none under way');
});

t.test('closing waits for a start that is under way in another thread', async (t) => {
  const memory = makeSpawnGateMemory();
  const words = new Int32Array(new SharedArrayBuffer(8));
  const thread = await insideThread(memory, words);
  const gate = new SpawnGate(memory);
  t.equal(gate.close(20), false, 'not for longer than it was told');
  Atomics.store(words, 0, 1);
  Atomics.notify(words, 0);
  t.ok(gate.close(60_000));
  t.equal(Atomics.load(words, 1), 1, 'the start is over');
  t.same(await once(thread, 'message'), ['started'], 'what was under way is a start like others');
  await thread.terminate();
});
