/**
 * Fuzzes what takes bytes of others: frames, model streams, logs, tool arguments, settings, the supervisor's lines. A failing input is
 * made smaller, kept in test/fuzz/corpus and printed; exits 1 then.
 *
 * Usage: npm run fuzz -- [--target T] [--seconds N] [--seed S]. Seconds are for each target. Needs `npm run compile`.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './source-stamp.mjs';

const { values } = parseArgs({
  options: { target: { type: 'string' }, seconds: { type: 'string', default: '30' }, seed: { type: 'string' } },
});
const seconds = Number(values.seconds);
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
if (!(seconds > 0) || !Number.isSafeInteger(seed)) throw new Error('--seconds needs a number above 0 and --seed a whole number');

const { allTargets } = await import(join(root, 'build/test/fuzz/all-targets.js'));
const { runCampaign } = await import(join(root, 'build/test/fuzz/campaign.js'));
const chosen = allTargets.filter(({ name }) => values.target === undefined || name === values.target);
if (chosen.length === 0) throw new Error(`--target must be one of ${allTargets.map(({ name }) => name).join(', ')}`);

for (const target of chosen) {
  const result = await runCampaign(target, { seed, seconds, keep: true });
  const speed = result.seconds === 0 ? 0 : result.runs / result.seconds;
  console.log(`${target.name}: ${result.kept} kept, ${result.runs} made, ${speed.toFixed(0)} a second, seed ${seed}`);
  if (result.failure === undefined) continue;
  process.exitCode = 1;
  const { reason, input, path } = result.failure;
  console.log(
    `  ${reason.split('\n').slice(0, 6).join('\n  ')}\n  ${input.length} bytes, kept in ${path}:\n  ${JSON.stringify(input.subarray(0, 1500).toString('latin1'))}`,
  );
}
