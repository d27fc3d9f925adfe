/**
 * What is put under load, and the model server that feeds it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgentProcess } from './agent-process.ts';

/** The compiled files, `build/`. */
export const built = fileURLToPath(new URL('../../', import.meta.url));
const cli = join(built, '..', 'dist', 'main', 'cli.js');

export interface ModelServerProcess {
  readonly baseUrl: string;
  readonly pid: number;
  close(): Promise<void>;
}

export async function startModelServer(): Promise<ModelServerProcess> {
  const script = join(built, 'test', 'support', 'model-server-main.js');
  const child: ChildProcess = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout!, 'data');
  const { baseUrl } = JSON.parse(String(line)) as { baseUrl: string };
  const exited = once(child, 'exit');
  return {
    baseUrl,
    pid: child.pid!,
    close: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** `floor`, `floor:history` for one that keeps its conversations, or an isolation of ours with its greatest number of threads, for example `shared:2`, `dedicated:64`. */
export type TargetName = string;

export interface TargetOptions {
  readonly flags?: readonly string[];
  /** Called before the start, for what the server is to find in its state directory. */
  readonly prepare?: (stateDir: string) => void;
  /** Our server compiled file by file, with threads that break when a prompt says so (`test/support/saboteur-thread.ts`). */
  readonly saboteur?: boolean;
}

export interface Target {
  readonly name: TargetName;
  readonly agent: AgentProcess;
  readonly stateDir: string;
  /** From the start of the process to the answer of `initialize`. */
  readonly initializeMs: number;
  /** Ends the agent; milliseconds until its exit. */
  readonly close: () => Promise<number>;
}

export async function startTarget(name: TargetName, model: ModelServerProcess, options: TargetOptions = {}): Promise<Target> {
  const stateDir = mkdtempSync(join(tmpdir(), 'dsh-acp-bench-'));
  options.prepare?.(stateDir);
  const start = performance.now();
  const agent = new AgentProcess(commandFor(name, { baseUrl: model.baseUrl, stateDir, ...options }), { HOME: stateDir });
  await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const initializeMs = performance.now() - start;
  return {
    name,
    agent,
    stateDir,
    initializeMs,
    close: async () => {
      try {
        return await agent.close();
      } finally {
        rmSync(stateDir, { recursive: true, force: true });
      }
    },
  };
}

function commandFor(name: TargetName, setup: TargetOptions & { readonly baseUrl: string; readonly stateDir: string }): string[] {
  const { baseUrl, stateDir } = setup;
  const [isolation, threads] = name.split(':');
  if (isolation === 'floor') {
    const floor = [process.execPath, join(built, 'bench', 'load', 'floor-agent.js'), `${baseUrl}/chat/completions`];
    return threads === undefined ? floor : [...floor, threads];
  }
  const flags = ['--state-dir', stateDir, '--base-url', baseUrl, '--model', 'bench', '--isolation', isolation ?? 'shared'];
  if (threads !== undefined) flags.push('--max-threads', threads);
  flags.push(...(setup.flags ?? []));
  // For profiles: BENCH_NODE_ARGS='--cpu-prof --cpu-prof-dir=DIR'.
  const nodeArgs = (process.env['BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
  const program = setup.saboteur === true ? join(built, 'test', 'support', 'serve-main.js') : cli;
  return [process.execPath, ...nodeArgs, program, ...flags];
}
