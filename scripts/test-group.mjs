/**
 * Runs several compiled test files in one process, one after the other: most files cost more to load than to run. Each is a test of tap's
 * root under its own path, so that failures name it, and to the file `t` is that test. Usage: `node scripts/test-group.mjs file ...`, paths below `build/test`.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './source-stamp.mjs';
import { bundledTap } from './test-packages.mjs';

const files = process.argv.splice(2);
// tap calls the directories of `t.testdir` by the program that was started; paths must not become longer than a file's own.
process.argv[1] = join(root, 'build/test/group');
const { t, runAs } = await import(pathToFileURL(bundledTap).href);

const timeout = Number(process.env.TAP_TIMEOUT ?? 30) * 1000;
t.setTimeout(0);
// A test may wait on nothing but a timer that keeps no process alive; alone, tap's own timer does.
const alive = setInterval(() => undefined, 1000);
for (const file of files) {
  let own;
  await t.test(file, { timeout }, (test) => {
    own = test;
    runAs(test);
    import(pathToFileURL(join(root, 'build/test', file)).href).then(
      () => test.end(),
      (error) => {
        test.fail(error);
        test.end();
      },
    );
  });
  // What has failed may go on, or have left something behind: the runner gives the other files a new process.
  if (!own.passing()) process.exit(1);
}
clearInterval(alive);
