/**
 * The campaigns in a size that fits a nightly run, some seven minutes on two idle cores: fuzzing, the simulation, kills below a
 * supervisor, a short soak, one after another. Ends with a line for each and exits 1 when one of them found something; what that one
 * said is printed then. Each prints the seed that it can be run again with.
 *
 * Usage: npm run campaigns -- [--only=fuzz|simulate|supervisor|soak]. Compiles and builds first. Linux alone.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setup } from './setup.mjs';
import { root } from './source-stamp.mjs';

const fuzzSeconds = 60;

/** By name: the script, its arguments, and what is the gist of its output. */
const campaigns = {
  fuzz: { script: 'fuzz.mjs', args: async () => ['--seconds', String(fuzzSeconds / (await fuzzTargets()))], gist: /\d+ made, .*/g },
  simulate: {
    script: 'simulate.mjs',
    args: () => ['--seeds', '2000', '--from', String(1 + (Date.now() % 1_000_000))],
    gist: /^\d+ seeds, \d+ events.*/gm,
  },
  supervisor: { script: 'supervisor-campaign.mjs', args: () => ['--kills=20'], gist: /^\d+ kills, .*/gm },
  soak: { script: 'soak.mjs', args: () => ['--minutes=1', '--sessions=60'], gist: /^. p99 of .*/gm },
};

async function fuzzTargets() {
  const { allTargets } = await import(join(root, 'build/test/fuzz/all-targets.js'));
  return allTargets.length;
}

const only = process.argv.slice(2).map((argument) => /^--only=(.+)$/.exec(argument)?.[1]);
const unknown = only.find((name) => name === undefined || !Object.hasOwn(campaigns, name));
if (only.length > 0 && (unknown !== undefined || only.includes(undefined)))
  throw new Error(`use --only=${Object.keys(campaigns).join('|')}`);

let running;
/** Each ends what it has started when it is told to end. */
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    running?.kill(signal);
    process.exit(1);
  });
}

/** Never rejects. */
async function run(name) {
  const { script, args, gist } = campaigns[name];
  const started = performance.now();
  const given = await args();
  console.log(`${name}: node scripts/${script} ${given.join(' ')}`);
  const child = spawn(process.execPath, ['--enable-source-maps', join(root, 'scripts', script), ...given], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running = child;
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output = (output + text).slice(-200_000)));
  const code = await new Promise((resolve) => {
    child.on('error', (error) => {
      output += String(error);
      resolve(1);
    });
    child.on('close', (status, signal) => resolve(status ?? signal));
  });
  if (code !== 0) console.log(output);
  const found = output.match(gist) ?? [];
  const seconds = Math.round((performance.now() - started) / 1000);
  return {
    name,
    ok: code === 0,
    line: `${code === 0 ? 'ok  ' : 'FAIL'} ${name.padEnd(10)} ${String(seconds).padStart(4)} s  ${gistOf(name, found)}`,
  };
}

function gistOf(name, found) {
  if (name !== 'fuzz') return found.at(-1) ?? '';
  const made = found.reduce((sum, text) => sum + Number.parseInt(text, 10), 0);
  return `${made} inputs made for ${found.length} targets`;
}

await setup({ tests: true });
const results = [];
for (const name of only.length > 0 ? only : Object.keys(campaigns)) results.push(await run(name));
console.log(['', ...results.map(({ line }) => line)].join('\n'));
process.exit(results.every(({ ok }) => ok) ? 0 : 1);
