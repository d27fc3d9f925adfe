/**
 * What one streamed delta costs a session thread between the model adapter and the port, and what an outbox can carry.
 */
import { MessageChannel } from 'node:worker_threads';
import type { DataBatch } from '../../src/shared/thread-protocol.ts';
import { ThreadOutbox } from '../../src/worker/outbox/thread-outbox.ts';
import { Projector } from '../../src/worker/projection/projector.ts';
import { measureAll } from './measured.ts';

const count = 20_000;
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

/** Kept so that no measured work can be optimised away. */
let sink = 0;

function chunkFrames(): void {
  for (let index = 0; index < count; index += 1) sink += projector.chunkFrame('text', 'message-1', wordAt(index)).length;
}

function projectedChunks(): void {
  for (let index = 0; index < count; index += 1) {
    const data = { turn: 1, step: 1, messageId: 'message-1', kind: 'text' as const, text: wordAt(index) };
    sink += projector.projectFrames({ type: 'assistant/chunk', data })[0]?.length ?? 0;
  }
}

function outboxAlone(): void {
  const outbox = new ThreadOutbox({ postMessage: (batch: DataBatch) => void (sink += batch.bytes) });
  for (let index = 0; index < count; index += 1) outbox.send(projector.chunkFrame('text', 'message-1', wordAt(index)));
  outbox.flush();
}

/** The other side takes each batch and gives its credit back, as main does. */
async function outboxAndPort(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const outbox = new ThreadOutbox(port1);
  port1.on('message', (message: { credit: number }) => outbox.returnCredit(message.credit));
  port2.on('message', (batch: DataBatch) => {
    sink += batch.frames;
    port2.postMessage({ credit: batch.bytes });
  });
  for (let index = 0; index < count; index += 1) {
    await outbox.whenWritable();
    outbox.send(projector.chunkFrame('text', 'message-1', wordAt(index)));
  }
  outbox.flush();
  port1.close();
}

await measureAll('projection', [
  { what: 'a delta to its frame, the quick way', unit: 'delta', count, run: chunkFrames },
  { what: 'the same through the projection of events', unit: 'delta', count, run: projectedChunks },
  { what: 'a delta to a batch, port without a reader', unit: 'delta', count, run: outboxAlone },
  { what: 'a delta through a MessagePort, with credit', unit: 'delta', count, run: outboxAndPort },
]);
if (sink === 0) throw new Error('Nothing was projected.');
