/** Runs the server on this process's stdin and stdout, and ends the process with its exit code. */
import { dirname, join } from 'node:path';
import type { ModelConfig } from '../../shared/config.ts';
import type { LoadedConfig } from '../config/load-config.ts';
import { serve } from '../server.ts';
import { packageRoot, packageVersion } from './own-package.ts';
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

/** @param options.handStarted whether a person sits at stdin and gave no command */
export async function runServer(loaded: LoadedConfig, options: { handStarted: boolean }): Promise<number> {
  const { config } = loaded;
  const dist = join(packageRoot(), 'dist');
  if (options.handStarted) {
    process.stderr.write(terminalNotice(packageVersion(), join(dist, 'main', 'cli.js'), modelName(config.session.model)));
  }
  const code = await serve(config, {
    input: process.stdin,
    sessionThreadPath: join(dist, 'worker', 'session-thread.cjs'),
    brokerPath: join(dist, 'worker', 'broker.cjs'),
    withheldVariables: loaded.settings.filter(({ name }) => name === 'api_key_env').map(({ value }) => String(value)),
    configDirectories: [
      ...(loaded.file === undefined ? [] : [dirname(loaded.file.path)]),
      ...loaded.settings.flatMap(({ name, value }) => (name === 'policy_file' && value !== undefined ? [String(value)] : [])),
    ],
  });
  // Everything is closed and written by now; an open stdin would keep the process alive.
  process.exit(code);
}
