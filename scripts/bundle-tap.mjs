/**
 * Puts tap as one file where the compiled tests find it before the package itself: its 350 files cost each of more than 200 test files
 * 0.15 s of a core to load. A path with `@tapjs` in it, since by that tap knows its own frames and leaves them out of stacks.
 *
 * Without it all tests run as well, only slower.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMain, root } from './source-stamp.mjs';

const folder = join(root, 'build/node_modules/tap');
const parts = 'node_modules/@tapjs';
/** What `import 'tap'` of a compiled test gives, with `runAs` beside it. */
export const bundledTap = join(folder, parts, 'index.js');

/** `t` is tap's root, or where several files share a process the test that stands for the file at work. */
const entry = `import root from './bundle.js';
export * from './bundle.js';
let current = root;
export const runAs = (test) => { current = test; };
export default new Proxy(root, {
  get: (_, key) => (typeof current[key] === 'function' ? current[key].bind(current) : current[key]),
  set: (_, key, value) => Reflect.set(current, key, value),
});
`;

export async function bundleTap() {
  const { build } = await import('esbuild');
  await build({
    stdin: { contents: `export * from 'tap'; export { default } from 'tap';`, resolveDir: root },
    outfile: join(folder, parts, 'bundle.js'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    // Some of its packages are CommonJS and require Node's own modules.
    banner: { js: `import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);` },
    logLevel: 'warning',
  });
  writeFileSync(bundledTap, entry);
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name: 'tap', type: 'module', main: `./${parts}/index.js` })}\n`);
}

if (isMain(import.meta.url)) await bundleTap();
