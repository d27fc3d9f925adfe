/** Holds the connection on this process's stdio, and runs the same command line as a server below it. */
import type { LoadedConfig } from '../config/load-config.ts';
import { supervise } from '../supervisor/supervise.ts';
import { takeStdout } from '../transport/stdout-guard.ts';

export async function runSupervised({ config }: LoadedConfig): Promise<number> {
  const output = takeStdout();
  const quiet = config.logLevel === 'silent' || config.logLevel === 'error';
  const code = await supervise({
    input: process.stdin,
    output,
    server: {
      command: process.execPath,
      args: [...process.execArgv, ...process.argv.slice(1)],
      env: process.env,
      stuckAfterMs: config.stuckServerMs,
    },
    maxFrameBytes: config.maxFrameBytes,
    maxRestarts: config.maxRestarts,
    shutdownGraceMs: config.shutdownGraceMs,
    note: (text) => {
      if (!quiet) process.stderr.write(`dsh-acp: ${text}\n`);
    },
  });
  // An open stdin would keep the process alive.
  process.exit(code);
}
