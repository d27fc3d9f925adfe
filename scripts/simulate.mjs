/**
 * Runs the simulation: `npm run simulate -- --seed N [--trace]` one seed, with its history; `npm run simulate -- --seeds N [--from N]`
 * many, in one process a core. Prints progress and a summary; exits 1 when a seed fails. Needs `npm run compile`.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './source-stamp.mjs';

const mostShown = 30;
const usage = 'use --seed N [--trace], or --seeds N [--from N] [--jobs N]';
const options = { seed: undefined, seeds: undefined, from: 1, jobs: availableParallelism(), trace: false };
const args = process.argv.slice(2);
for (let at = 0; at < args.length; at += 1) {
  const [name, joined] = args[at].replace(/^--/, '').split('=');
  if (name === 'trace') options.trace = true;
  else if (Object.hasOwn(options, name)) {
    const value = Number(joined ?? args[(at += 1)]);
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(usage);
    options[name] = value;
  } else throw new Error(usage);
}

const { failureText, runSeed } = await import(join(root, 'build/test/simulation/run-seed.js'));

if (process.send !== undefined) {
  process.on('message', async ({ from, to }) => {
    const failed = [];
    let events = 0;
    for (let seed = from; seed < to; seed += 1) {
      const outcome = await runSeed(seed);
      events += outcome.events;
      if (outcome.complaints.length > 0) failed.push({ seed, complaint: outcome.complaints[0] });
    }
    process.send({ count: to - from, events, failed });
  });
} else if (options.seed !== undefined) {
  const outcome = await runSeed(options.seed, options.trace);
  if (options.trace) console.log(outcome.history.join('\n'));
  console.log(`seed ${options.seed}: ${outcome.events} events, history ${outcome.hash}, ${outcome.complaints.length} complaints`);
  for (const complaint of outcome.complaints) console.log(`  ${complaint}`);
  if (outcome.complaints.length > 0) {
    if (!options.trace) console.log(await failureText(options.seed));
    process.exitCode = 1;
  }
} else if (options.seeds > 0) {
  process.exitCode = await runMany(options.seeds);
} else throw new Error(usage);

/** Pieces of 100 seeds, handed to whoever is free. What fails is told at once. */
async function runMany(seeds) {
  const started = performance.now();
  const end = options.from + seeds;
  let next = options.from;
  let done = 0;
  let events = 0;
  const failed = [];
  let told = 0;
  let shown = 0;
  await Promise.all(
    Array.from({ length: options.jobs }, () => {
      const child = fork(fileURLToPath(import.meta.url), [], { execArgv: ['--enable-source-maps'] });
      return new Promise((resolve, reject) => {
        const give = () => {
          if (next >= end) return child.disconnect();
          const from = next;
          next = Math.min(end, from + 100);
          child.send({ from, to: next });
        };
        child.on('message', (piece) => {
          done += piece.count;
          events += piece.events;
          failed.push(...piece.failed);
          for (const { seed, complaint } of piece.failed) if ((shown += 1) <= mostShown) console.log(`seed ${seed}: ${complaint}`);
          if (done - told >= 1000) {
            told = done;
            console.log(`${done} of ${seeds} seeds, ${failed.length} failed`);
          }
          give();
        });
        child.on('error', reject);
        child.on('exit', (code, signal) => {
          if (code === 0) resolve();
          else reject(new Error(`a process of the simulation ended with ${code ?? signal}`));
        });
        give();
      });
    }),
  );
  failed.sort((a, b) => a.seed - b.seed);
  if (failed.length > 0) console.log(await failureText(failed[0].seed));
  console.log(`${done} seeds, ${events} events, ${failed.length} failed, ${Math.round((performance.now() - started) / 1000)} s`);
  return failed.length === 0 ? 0 : 1;
}
