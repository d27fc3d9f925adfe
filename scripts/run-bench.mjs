/** Brings everything up to date and runs the compiled bench, or its report; arguments are passed on (`npm run bench -- --help`). */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { root } from './source-stamp.mjs';
import { setupOrExit } from './setup.mjs';

await setupOrExit({ tests: true });
const [first, ...others] = process.argv.slice(2);
const program = first === 'report' ? ['build/bench/report/main.js', ...others] : ['build/bench/main.js', ...process.argv.slice(2)];
const bench = spawn(process.execPath, ['--enable-source-maps', join(root, program[0]), ...program.slice(1)], {
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
