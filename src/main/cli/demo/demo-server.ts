/** The demo's server: a child process, spoken to as an editor does, over its stdin and stdout. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk';

const stderrLimit = 16 * 1024;
const exitGraceMs = 10_000;

export interface DemoServer {
  readonly stream: Stream;
  readonly pid: number | undefined;
  /** The last of what the server wrote to stderr. */
  stderr(): string;
  /** Closes the server's stdin, as a client does that goes away; fulfils with a description of the exit. */
  stop(): Promise<{ readonly clean: boolean; readonly text: string }>;
  /** At once, without grace. */
  kill(): void;
}

/** Settings of the person who runs the demo must not change it. */
function demoEnvironment(scratch: string): NodeJS.ProcessEnv {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DSH_ACP_')));
  return { ...env, XDG_CONFIG_HOME: join(scratch, 'config') };
}

async function exitOf(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<{ clean: boolean; text: string }> {
  if (child.exitCode === null && child.signalCode === null) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
      }, exitGraceMs);
      child.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
  return { clean: child.exitCode === 0, text: child.exitCode === null ? `signal ${child.signalCode}` : `code ${child.exitCode}` };
}

export function startDemoServer(packageRoot: string, scratch: string): DemoServer {
  const args = ['serve', '--model', 'scripted', '--pace-ms', '15', '--state-dir', join(scratch, 'state')];
  const child = spawn(process.execPath, [join(packageRoot, 'dist', 'main', 'cli.js'), ...args], {
    cwd: scratch,
    env: demoEnvironment(scratch),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-stderrLimit);
  });
  child.on('error', (error) => {
    stderr += `the server could not be started: ${error.message}\n`;
  });
  // A write after the server's death fails; the connection's end says so already.
  child.stdin.on('error', () => undefined);
  return {
    stream: ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>),
    pid: child.pid,
    stderr: () => stderr,
    stop: async () => {
      child.stdin.end();
      return await exitOf(child);
    },
    kill: () => child.kill('SIGKILL'),
  };
}
