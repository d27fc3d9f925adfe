/**
 * Two servers under a mixed load while threads, children and the model server are killed and the reader stalls: memory, descriptors,
 * threads and children must stay flat, undisturbed sessions quick, everything answered, every log whole. Ends with one block of
 * figures, and exits 1 when something did not hold; what it says then names the session, the moment and the faults around it.
 *
 * Usage: npm run soak -- [--minutes=N] [--sessions=N] [--seed=N] [--json=FILE]. Needs `npm run compile`. Linux alone.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './source-stamp.mjs';

const options = { minutes: 30, sessions: 200, seed: Date.now() % 1_000_000 };
let json;
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(minutes|sessions|seed)=(\d+(?:\.\d+)?)$/.exec(argument) ?? [];
  if (name !== undefined) options[name] = Number(value);
  else if (argument.startsWith('--json=')) json = argument.slice('--json='.length);
  else throw new Error(`unknown option ${argument}; known are --minutes=N, --sessions=N, --seed=N and --json=FILE`);
}
const { soak } = await import(join(root, 'build/test/support/soak.js'));
console.log(`${options.minutes} minutes, ${options.sessions} sessions, seed ${options.seed}`);
const summary = await soak({ ...options, seconds: options.minutes * 60, judged: true, say: (line) => console.log(line) });
if (json !== undefined) writeFileSync(json, `${JSON.stringify(summary, undefined, 2)}\n`);
process.exit(summary.complaints.length === 0 ? 0 : 1);
