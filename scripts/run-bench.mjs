/** Brings everything up to date and runs the compiled bench; arguments are passed on (`npm run bench -- --help`). */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { root } from './source-stamp.mjs';
import { setupOrExit } from './setup.mjs';

await setupOrExit({ tests: true });
const bench = spawn(process.execPath, ['--enable-source-maps', join(root, 'build/bench/main.js'), ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
bench.on('error', (error) => {
  console.error(`the bench could not be started: ${error.message}`);
  process.exitCode = 1;
});
bench.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 130);
});
