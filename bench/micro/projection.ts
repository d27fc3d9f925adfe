/**
 * What one streamed delta costs a session thread between the model adapter and the port, and what an outbox can carry.
 *
 * Prints a line of JSON per measurement: nanoseconds per operation, the median of several rounds with their spread.
 */
import { MessageChannel } from 'node:worker_threads';
import type { DataBatch } from '../../src/shared/thread-protocol.ts';
import { ThreadOutbox } from '../../src/worker/outbox/thread-outbox.ts';
import { Projector } from '../../src/worker/projection/projector.ts';

const rounds = 9;
const operations = 200_000;
const words = ['Hello', ' wörld', ' the', ' "quoted"', ' line\n', ' function', ' 漢字', ' end.'];

const projector = new Projector({
  sessionId: '0196f2f0-7f6e-7cc1-9c5b-3a1d6f7e8a90',
  cwd: '/workspace',
  profile: 'editor',
  client: { terminalOutput: true },
  tools: () => undefined,
});

function wordAt(index: number): string {
  return words[index % words.length] ?? '';
}

async function measure(name: string, run: () => void | Promise<void>, perRound = operations): Promise<void> {
  const nanoseconds: number[] = [];
  await run();
  for (let round = 0; round < rounds; round += 1) {
    const start = process.hrtime.bigint();
    await run();
    nanoseconds.push(Number(process.hrtime.bigint() - start) / perRound);
  }
  nanoseconds.sort((a, b) => a - b);
  const at = (index: number): number => Math.round(nanoseconds[index] ?? 0);
  const report = { bench: name, nsPerOp: at(rounds >> 1), min: at(0), max: at(rounds - 1), perSecond: Math.round(1e9 / at(rounds >> 1)) };
  console.log(JSON.stringify(report));
}

/** Kept so that no measured work can be optimised away. */
let sink = 0;

await measure('chunkFrame', () => {
  for (let index = 0; index < operations; index += 1) sink += projector.chunkFrame('text', 'message-1', wordAt(index)).length;
});

await measure('projectFrames of assistant/chunk', () => {
  for (let index = 0; index < operations; index += 1) {
    const data = { turn: 1, step: 1, messageId: 'message-1', kind: 'text' as const, text: wordAt(index) };
    sink += projector.projectFrames({ type: 'assistant/chunk', data })[0]?.length ?? 0;
  }
});

await measure('chunkFrame + outbox.send, port without a reader', () => {
  const outbox = new ThreadOutbox({ postMessage: (batch: DataBatch) => void (sink += batch.bytes) });
  for (let index = 0; index < operations; index += 1) outbox.send(projector.chunkFrame('text', 'message-1', wordAt(index)));
  outbox.flush();
});

await measure('chunkFrame + outbox.send, MessagePort and credit', async () => {
  const { port1, port2 } = new MessageChannel();
  const outbox = new ThreadOutbox(port1);
  port1.on('message', (message: { credit: number }) => outbox.returnCredit(message.credit));
  port2.on('message', (batch: DataBatch) => {
    sink += batch.frames;
    port2.postMessage({ credit: batch.bytes });
  });
  for (let index = 0; index < operations; index += 1) {
    await outbox.whenWritable();
    outbox.send(projector.chunkFrame('text', 'message-1', wordAt(index)));
  }
  outbox.flush();
  port1.close();
});

console.error(`checked ${sink} units`);
