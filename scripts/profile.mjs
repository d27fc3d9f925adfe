/**
 * `npm run bench:profile`: profiles the server that the sources of this moment make, with source maps, in a package of its own in the
 * system's folder for temporary files: `dist/` may change meanwhile. What is profiled and how: bench/profile/main.ts.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleWithMaps } from './build.mjs';
import { setupOrExit } from './setup.mjs';
import { root } from './source-stamp.mjs';

await setupOrExit({ tests: true });
const copy = mkdtempSync(join(tmpdir(), 'dsh-acp-profile-'));
copyFileSync(join(root, 'package.json'), join(copy, 'package.json'));
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
await bundleWithMaps(join(copy, 'dist'));
const profiler = spawn(
  process.execPath,
  ['--enable-source-maps', join(root, 'build/bench/profile/main.js'), '--package', copy, ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
profiler.on('exit', (code, signal) => {
  rmSync(copy, { recursive: true, force: true });
  process.exitCode = code ?? (signal === null ? 1 : 130);
});
