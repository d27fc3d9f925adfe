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
import { turnCrashReportsOff } from '../../src/main/crash-reports.ts';
import { serve } from '../../src/main/server.ts';

/** The files of the threads lie beside this one: scripts where this is part of one (`saboteur-program.ts`), modules as they are compiled. */
function threadFile(name: string): string {
  const kind = import.meta.url.endsWith('.cjs') ? 'cjs' : 'js';
  return fileURLToPath(new URL(`./${name}.${kind}`, import.meta.url));
}

/** Never fulfils: the process ends with the server. @param keepCode as in `dsh-acp` itself */
export async function start(argv: readonly string[], keepCode?: () => void): Promise<never> {
  turnCrashReportsOff();
  const line = parseCommandLine(argv);
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
    if (process.env['SABOTAGE'] === 'main') throw new Error(`sabotage: main /secret/path ${Object.values(process.env).join(' ')}`);
    brokers.postMessage('end');
  });

  const code = await serve(config, {
    input: process.stdin,
    sessionThreadPath: threadFile('saboteur-thread'),
    brokerPath: threadFile('saboteur-broker'),
    withheldVariables: [],
    configDirectories: [],
    keepCode,
  });
  process.exit(code);
}
