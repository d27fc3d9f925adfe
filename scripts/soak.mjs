/**
 * Two servers under a mixed load while threads, children and the model server are killed and the reader stalls: memory, descriptors,
 * threads and children must stay flat, undisturbed sessions quick, everything answered, every log whole. Exits 1 when not.
 *
 * Usage: npm run soak -- [--minutes=N] [--sessions=N] [--seed=N]. Needs `npm run compile`. Linux alone.
 */
import { join } from 'node:path';
import { root } from './source-stamp.mjs';

const options = { minutes: 30, sessions: 200, seed: Date.now() % 1_000_000 };
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--(minutes|sessions|seed)=(\d+(?:\.\d+)?)$/.exec(argument) ?? [];
  if (name === undefined) throw new Error(`unknown option ${argument}; known are --minutes=N, --sessions=N and --seed=N`);
  options[name] = Number(value);
}
const { soak } = await import(join(root, 'build/test/support/soak.js'));
console.log(`${options.minutes} minutes, ${options.sessions} sessions, seed ${options.seed}`);
const complaints = await soak({ ...options, seconds: options.minutes * 60, judged: true, say: (line) => console.log(line) });
for (const complaint of complaints) console.error(complaint);
console.log(complaints.length === 0 ? 'every bound held' : `${complaints.length} bounds did not hold`);
process.exit(complaints.length === 0 ? 0 : 1);
