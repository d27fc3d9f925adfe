/**
 * The real server over real stdio, with the saboteur's threads in place of the plain ones. Takes the flags of `dsh-acp serve`.
 *
 * SIGUSR2 breaks what the variable `SABOTAGE` names: the `main` thread (an uncaught exception) or the `broker` thread (it ends).
 */
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { BroadcastChannel } from 'node:worker_threads';
import { rgPath } from '@vscode/ripgrep';
import { parseCommandLine } from '../../src/main/cli/parse-command-line.ts';
import { loadConfig } from '../../src/main/config/load-config.ts';
import { serve } from '../../src/main/server.ts';

const line = parseCommandLine(process.argv.slice(2));
const { config } = await loadConfig({
  env: process.env,
  home: process.env['HOME'] ?? '',
  cwd: process.cwd(),
  flags: line.flags,
  file: line.file,
  cores: availableParallelism(),
  version: '0.0.0',
  ripgrepPath: rgPath,
});

const brokers = new BroadcastChannel('sabotage-broker');
brokers.unref();
process.on('SIGUSR2', () => {
  if (process.env['SABOTAGE'] === 'main') throw new Error('sabotage: main /secret/path');
  brokers.postMessage('end');
});

process.exit(
  await serve(config, {
    input: process.stdin,
    sessionThreadPath: fileURLToPath(new URL('./saboteur-thread.js', import.meta.url)),
    brokerPath: fileURLToPath(new URL('./saboteur-broker.js', import.meta.url)),
    withheldVariables: [],
    configDirectories: [],
  }),
);
