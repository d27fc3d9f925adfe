/**
 * The snapshot suite: each folder of `scenarios/` is played against the assembled server, its meaning is checked, and its frames are
 * compared with the kept ones.
 *
 * `node build/test/snapshot/snapshot.test.js --update [scenario …]` writes the frames anew, but never those of a run whose meaning is
 * wrong.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import PQueue from 'p-queue';
import t, { type Test } from 'tap';
import { meaningProblems } from './meaning.ts';
import { play, type Played } from './play.ts';
import { readScenario, type Scenario, scenarioNames } from './scenario.ts';
import { requestText, transcript } from './transcript.ts';

const args = process.argv.slice(2);
const update = args.includes('--update');
const wanted = args.filter((arg) => !arg.startsWith('--'));
const names = scenarioNames().filter((name) => wanted.length === 0 || wanted.includes(name));

const lanes = new PQueue({ concurrency: 3 });
const runs = names.map((name) => {
  const scenario = readScenario(name);
  const run = lanes.add(() => play(scenario));
  run.catch(() => undefined); // Reported where it is awaited, which may be later.
  return { scenario, run };
});

for (const { scenario, run } of runs) {
  await t.test(`${scenario.name}: ${scenario.steps.about}`, async (t) => check(t, scenario, await run));
}

t.ok(names.length >= (wanted.length === 0 ? 16 : 1), `${names.length} scenarios were found`);

function check(t: Test, scenario: Scenario, played: Played): void {
  const problems = meaningProblems(scenario, played);
  for (const problem of problems) t.fail(problem);
  // Frames of a run that went wrong say nothing that the problems do not.
  if (problems.length > 0) return;
  compare(t, scenario.framesPath, transcript(played).join('\n'));
  if (scenario.steps.pinRequest === true) compare(t, scenario.requestPath, requestText(played));
}

function compare(t: Test, path: string, text: string): void {
  if (update) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${text}\n`);
  }
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
  t.strictSame(text.split('\n'), kept, `as in expected/${basename(path)}`);
}
