/**
 * What piscina loads on a session thread: a loader of the real bundle that shares compiled code between the threads.
 *
 * Stays tiny and imports nothing of the bundle: it is the one part that every thread compiles for itself.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { workerData } from 'node:worker_threads';
import { publishCode, readCode, refuseStoredCode, type SessionThreadData } from '../shared/code-cache.ts';
import type { SessionTask } from '../shared/thread-protocol.ts';

interface SessionThreadModule {
  default(task: SessionTask, afterTurn: () => void): Promise<void>;
  readonly spare: () => void;
}

type Wrapper = (exports: object, require: NodeJS.Require, module: { exports: object }, filename: string, dirname: string) => void;

const { codeCache } = workerData as SessionThreadData;
const filename = join(__dirname, 'session-host.cjs');
const cachedData = readCode(codeCache.warm) ?? readCode(codeCache.early);
// The wrapper of CommonJS, on one line with the source, so that line numbers in stacks are the file's own.
const source = `(function (exports, require, module, __filename, __dirname) {${readFileSync(filename, 'utf8')}\n})`;
const script = new Script(source, cachedData === undefined ? { filename } : { filename, cachedData });
if (script.cachedDataRejected === true) refuseStoredCode(codeCache.warm);
const loaded = { exports: {} };
(script.runInThisContext() as Wrapper)(loaded.exports, require, loaded, filename, __dirname);
const bundle = loaded.exports as SessionThreadModule;
publishCode(codeCache.early, () => script.createCachedData());

function publishWarmCode(): void {
  publishCode(codeCache.warm, () => script.createCachedData());
}

export default (task: SessionTask): Promise<void> => bundle.default(task, publishWarmCode);

/** A task that ends at once: running it makes piscina hold one more idle thread. */
export const spare = (): void => bundle.spare();
