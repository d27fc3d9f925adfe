/**
 * Puts packages that most tests load, each as one file, where the compiled tests find them before the packages themselves: the 350 files of
 * tap cost each test process 0.15 s of a core to load, those of fast-check half of that.
 *
 * Without these files all tests run as well, only slower, and property tests draw another seed each time.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMain, root } from './source-stamp.mjs';

const packages = join(root, 'build/node_modules');
/** With `@tapjs` in its path, since by that tap knows its own frames and leaves them out of stacks. */
const tapParts = 'node_modules/@tapjs';
/** What `import 'tap'` of a compiled test gives, with `runAs` beside it. */
export const bundledTap = join(packages, 'tap', tapParts, 'index.js');

/** `t` is tap's root, or where several files share a process the test that stands for the file at work. */
const tapEntry = `import root from './bundle.js';
export * from './bundle.js';
let current = root;
export const runAs = (test) => { current = test; };
export default new Proxy(root, {
  get: (_, key) => (typeof current[key] === 'function' ? current[key].bind(current) : current[key]),
  set: (_, key, value) => Reflect.set(current, key, value),
});
`;

/** The same cases each time, as `test/support/test-seed.ts` says. */
const fastCheckEntry = `export * from 'fast-check';
export { default } from 'fast-check';
import { configureGlobal } from 'fast-check';
import { testSeed } from '../../test/support/test-seed.js';
configureGlobal({ seed: testSeed });
`;

function writePackage(name, main) {
  writeFileSync(join(packages, name, 'package.json'), `${JSON.stringify({ name, type: 'module', main: `./${main}` })}\n`);
}

export async function bundleTestPackages() {
  const { build } = await import('esbuild');
  const common = { bundle: true, platform: 'node', format: 'esm', target: 'node20.19', logLevel: 'warning' };
  await Promise.all([
    build({
      ...common,
      stdin: { contents: `export * from 'tap'; export { default } from 'tap';`, resolveDir: root },
      outfile: join(packages, 'tap', tapParts, 'bundle.js'),
      // Some of its packages are CommonJS and require Node's own modules.
      banner: { js: `import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);` },
    }),
    build({
      ...common,
      stdin: { contents: fastCheckEntry, resolveDir: root },
      outfile: join(packages, 'fast-check/index.js'),
      external: ['*/test-seed.js'],
    }),
  ]);
  writeFileSync(bundledTap, tapEntry);
  writePackage('tap', `${tapParts}/index.js`);
  writePackage('fast-check', 'index.js');
}

if (isMain(import.meta.url)) await bundleTestPackages();
