/** The server with everything in one thread, for the bench only. Takes the flags of `dsh-acp serve`. Bundled by `bundle-one-thread.ts`. */
import { parseCommandLine } from '../../../src/main/cli/parse-command-line.ts';
import { loadConfig } from '../../../src/main/config/load-config.ts';
import { serve } from '../../../src/main/server.ts';

const line = parseCommandLine(process.argv.slice(2));
const { config } = await loadConfig({
  env: process.env,
  home: process.env['HOME'] ?? '',
  cwd: process.cwd(),
  flags: line.flags,
  file: line.file,
  cores: 1,
  version: '0.0.0',
  ripgrepPath: undefined,
});

process.exit(
  await serve(config, { input: process.stdin, sessionThreadPath: '', brokerPath: '', withheldVariables: [], configDirectories: [] }),
);
