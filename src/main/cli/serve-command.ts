/** Runs the server on this process's stdin and stdout, and ends the process with its exit code. */
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import type { ModelConfig } from '../../shared/config.ts';
import { orderlyExit, type Supervised } from '../../shared/supervised.ts';
import { codeFolder } from '../code-store.ts';
import type { LoadedConfig } from '../config/load-config.ts';
import type { KeyStore } from '../credentials/key-store.ts';
import { serve } from '../server.ts';
import { beatToSupervisor } from '../supervisor/server-beat.ts';
import { packageRoot, packageVersion } from './own-package.ts';
import { findRipgrep } from './find-ripgrep.ts';
import { ownLaunch } from './own-launch.ts';
import { keyVariableOf } from './key-server.ts';
import { terminalNotice } from './terminal-notice.ts';

function modelName(model: ModelConfig): string {
  switch (model.kind) {
    case 'scripted':
      return 'the built-in scripted model (no key needed)';
    case 'replay':
      return `the recorded stream ${model.path}`;
    case 'openai-compatible':
    default:
      return `${model.model} at ${model.baseUrl}`;
  }
}

export interface RunOptions {
  /** A person sits at stdin and gave no command. */
  readonly handStarted: boolean;
  readonly keys: KeyStore | undefined;
  /** Keeps compiled code for the next start; absent where that has been done. */
  readonly keepCode: (() => void) | undefined;
  /** Where the protocol is, when a supervisor holds stdio. */
  readonly supervised: Supervised | undefined;
}

export async function runServer(loaded: LoadedConfig, options: RunOptions): Promise<number> {
  const { config } = loaded;
  const { keys } = options;
  const dist = join(packageRoot(), 'dist');
  const compiled = codeFolder(process.env);
  if (options.handStarted) {
    process.stderr.write(terminalNotice(packageVersion(), join(dist, 'main', 'cli.js'), modelName(config.session.model)));
  }
  const code = await serve(config, {
    ...protocol(options.supervised),
    sessionThreadPath: join(dist, 'worker', 'session-thread.cjs'),
    brokerPath: join(dist, 'worker', 'broker.cjs'),
    withheldVariables: loaded.settings.filter(({ name }) => name === 'api_key_env').map(({ value }) => String(value)),
    credentials: { withKey: loaded.withKey, keys, keyVariable: keyVariableOf(loaded) },
    launch: ownLaunch(),
    findRipgrep,
    keepCode: options.keepCode,
    configDirectories: [
      ...(compiled === undefined ? [] : [compiled]),
      ...(keys === undefined ? [] : [dirname(keys.path)]),
      ...(loaded.file === undefined ? [] : [dirname(loaded.file.path)]),
      ...loaded.settings.flatMap(({ name, value }) => (name === 'policy_file' && value !== undefined ? [String(value)] : [])),
    ],
  });
  // Everything is closed and written by now; an open stdin would keep the process alive.
  process.exit(options.supervised !== undefined && code === 0 ? orderlyExit : code);
}

function protocol(supervised: Supervised | undefined): Pick<Parameters<typeof serve>[1], 'input' | 'socket' | 'supervised'> {
  if (supervised === undefined) return { input: process.stdin };
  if (supervised.beat !== undefined) beatToSupervisor(supervised.beat);
  // Half open: the last answers leave after the end of the input.
  const socket = new Socket({ fd: supervised.fd, readable: true, writable: true, allowHalfOpen: true });
  return { input: socket, socket, supervised };
}
