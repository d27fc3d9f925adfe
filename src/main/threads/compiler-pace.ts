/**
 * When V8 optimises the code of session threads.
 *
 * Each thread is an isolate that optimises the same hot functions for itself, on helper threads that compete with everything
 * else for the cores. Raising the budget of work before a function is optimised costs a thread a little at its start and saves
 * the process much: with 50 threads 30 % of all CPU per token, with two threads and 200 sessions 15 % (`bench`, Node 20).
 */
import { setFlagsFromString } from 'node:v8';

/** Bytes of bytecode run; V8's own default is 132 KB. Twice and half of it measured within the noise. */
const interruptBudget = 600_000;

/** To be called before any session thread is started. Does nothing on a V8 for which it was not measured. */
export function paceCompiler(): void {
  if (process.versions.v8.startsWith('11.')) setFlagsFromString(`--interrupt-budget=${interruptBudget}`);
}
