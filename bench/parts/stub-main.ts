/**
 * The server's way out alone: N threads that only make frames, and the real lane and writer in front of stdout.
 *
 * `node stub-main.js THREADS DURATION_MS FRAMES_PER_SECOND`; 0 frames per second is as fast as it goes. The last line that it writes is a
 * {@link StubSummary}.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { MainServices } from '../../src/shared/thread-protocol.ts';
import { Completions } from '../../src/main/threads/completions.ts';
import { ThreadLane } from '../../src/main/threads/thread-lane.ts';
import { FrameWriter } from '../../src/main/transport/frame-writer.ts';
import { takeStdout } from '../../src/main/transport/stdout-guard.ts';

export interface StubThreadData {
  readonly data: MessagePort;
  readonly durationMs: number;
  /** 0 is as fast as it goes. */
  readonly framesPerMs: number;
}

export interface StubSummary {
  readonly frames: number;
  /** Of the main thread, from the start of the threads to the last byte. */
  readonly mainCpuMs: number;
  readonly elapsedMs: number;
}

const output = takeStdout();
const [threads = 1, durationMs = 1000, perSecond = 0] = process.argv.slice(2).map(Number);
const writer = new FrameWriter(output, { stalledReaderMs: 30_000, onBroken: () => process.exit(1) });
const completions = new Completions();
/** The threads of the stub ask nothing of main. */
const services = (): MainServices => {
  const refuse = (): Promise<never> => Promise.reject(new Error('the stub source asks for nothing'));
  return {
    requestPermission: refuse,
    withdrawPermission: refuse,
    askClient: refuse,
    withdrawClientRequest: refuse,
    log: refuse,
    acquireModelSlot: refuse,
    releaseModelSlot: refuse,
    withdrawModelSlot: refuse,
    reportTrace: refuse,
    reportChosen: refuse,
    reportMemory: refuse,
    reportSubagentActivity: refuse,
    startSubagent: refuse,
    awaitSubagent: refuse,
    cancelSubagent: refuse,
    answerSubagent: refuse,
    disposeSubagent: refuse,
    countSubagents: refuse,
  };
};

function mainCpuMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

async function runThread(threadId: number): Promise<number> {
  const data = new MessageChannel();
  const control = new MessageChannel();
  const broker = new MessageChannel();
  const ports = { data: data.port2, control: control.port2, broker: broker.port2, heartbeat: new SharedArrayBuffer(4) };
  const lane = new ThreadLane(threadId, ports, { writer, completions, services });
  const workerData: StubThreadData = { data: data.port1, durationMs, framesPerMs: perSecond / threads / 1000 };
  const worker = new Worker(fileURLToPath(new URL('./stub-thread.js', import.meta.url)), { workerData, transferList: [data.port1] });
  const { frames, lastBatch } = await new Promise<{ frames: number; lastBatch: number }>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  await lane.batchTaken(lastBatch);
  return frames;
}

const cpuBefore = mainCpuMs();
const start = performance.now();
const counts = await Promise.all(Array.from({ length: threads }, (_, index) => runThread(index + 1)));
await writer.idle();
const frames = counts.reduce((sum, count) => sum + count, 0);
const summary: StubSummary = { frames, mainCpuMs: mainCpuMs() - cpuBefore, elapsedMs: performance.now() - start };
writer.write(`${JSON.stringify(summary)}\n`, () => process.exit(0));
