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
const file = 'node_modules/@tapjs/bundle.js';

export async function bundleTap() {
  const { build } = await import('esbuild');
  await build({
    stdin: { contents: `export * from 'tap'; export { default } from 'tap';`, resolveDir: root },
    outfile: join(folder, file),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    // Some of its packages are CommonJS and require Node's own modules.
    banner: { js: `import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);` },
    logLevel: 'warning',
  });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name: 'tap', type: 'module', main: `./${file}` })}\n`);
}

if (isMain(import.meta.url)) await bundleTap();
