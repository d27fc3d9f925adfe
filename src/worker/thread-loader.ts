/**
 * What piscina loads on a session thread: a loader of the real bundle that shares compiled code between the threads.
 *
 * Stays tiny and imports nothing of the bundle: it is the one part that every thread compiles for itself.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { MessageChannel, workerData } from 'node:worker_threads';
import { publishCode, readCode, refuseStoredCode, type SessionThreadData } from '../shared/code-cache.ts';
import type { SessionTask } from '../shared/thread-protocol.ts';

interface SessionThreadModule {
  default(task: SessionTask, afterTurn: () => void): Promise<void>;
  readonly spare: () => void;
}

type Wrapper = (exports: object, require: NodeJS.Require, module: { exports: object }, filename: string, dirname: string) => void;

const { codeCache } = workerData as SessionThreadData;
const filename = join(__dirname, 'session-host.cjs');
const script = compile(readSource(), readCode(codeCache.warm) ?? readCode(codeCache.early));
const loaded = { exports: {} };
(script.runInThisContext() as Wrapper)(loaded.exports, require, loaded, filename, __dirname);
const bundle = loaded.exports as SessionThreadModule;
publishCode(codeCache.early, () => script.createCachedData());

/** The build writes ASCII only, in the wrapper of CommonJS. */
function readSource(): string {
  const bytes = readFileSync(filename);
  const source = bytes.toString('latin1');
  release(bytes);
  return source;
}

function compile(source: string, cachedData: Uint8Array<ArrayBuffer> | undefined): Script {
  if (cachedData === undefined) return new Script(source, { filename });
  const compiled = new Script(source, { filename, cachedData });
  if (compiled.cachedDataRejected === true) refuseStoredCode(codeCache.warm);
  release(cachedData);
  return compiled;
}

/**
 * Gives large memory back at once: it would else stay until the thread has made garbage enough. What is sent to a port that is closed is
 * let go; memory that cannot be sent stays for the collector.
 */
function release({ buffer }: Uint8Array): void {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  try {
    if (buffer instanceof ArrayBuffer) port1.postMessage(buffer, [buffer]);
  } catch {
    // Of a pool that others use, too.
  }
  port1.close();
}

function publishWarmCode(): void {
  publishCode(codeCache.warm, () => script.createCachedData());
}

export default (task: SessionTask): Promise<void> => bundle.default(task, publishWarmCode);

/** A task that ends at once: running it makes piscina hold one more idle thread. */
export const spare = (): void => bundle.spare();
