/**
 * A session thread of the stub source: makes frames as fast as its credit lets it, or at a pace, with the real projector and outbox.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { CreditReturn } from '../../src/shared/thread-protocol.ts';
import { ThreadOutbox } from '../../src/worker/outbox/thread-outbox.ts';
import { Projector } from '../../src/worker/projection/projector.ts';
import type { StubThreadData } from './stub-main.ts';

const { data, durationMs, framesPerMs } = workerData as StubThreadData;
const outbox = new ThreadOutbox(data);
data.on('message', ({ credit }: CreditReturn) => outbox.returnCredit(credit));
const projector = new Projector({
  sessionId: '0196f2f0-7f6e-7cc1-9c5b-3a1d6f7e8a90',
  cwd: '/workspace',
  profile: 'editor',
  client: { terminalOutput: true },
  tools: () => undefined,
});

let frames = 0;

function send(): void {
  outbox.send(projector.chunkFrame('text', 'message-1', `tok${frames} `));
  frames += 1;
}

async function asFastAsItGoes(end: number): Promise<void> {
  while (frames % 64 !== 0 || performance.now() < end) {
    await outbox.whenWritable();
    send();
  }
}

/** What is due at each tick, as the deltas of many sessions come in one turn of the loop. */
async function paced(start: number, end: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const now = Math.min(performance.now(), end);
      for (const due = (now - start) * framesPerMs; frames < due; ) send();
      if (now < end) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
}

const start = performance.now();
await (framesPerMs === 0 ? asFastAsItGoes(start + durationMs) : paced(start, start + durationMs));
outbox.flush();
parentPort?.postMessage({ frames, lastBatch: outbox.flush() });
// The port stays open until main has written everything, as its credit comes back through it.
