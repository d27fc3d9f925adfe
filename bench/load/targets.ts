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

const built = fileURLToPath(new URL('../../', import.meta.url));
const cli = join(built, '..', 'dist', 'main', 'cli.js');

export interface ModelServerProcess {
  readonly baseUrl: string;
  /** Microseconds of CPU of the model server since its start. */
  cpuMicros(): Promise<number>;
  close(): Promise<void>;
}

export async function startModelServer(): Promise<ModelServerProcess> {
  const script = join(built, 'test', 'support', 'model-server-main.js');
  const child: ChildProcess = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout!, 'data');
  const { port, baseUrl } = JSON.parse(String(line)) as { port: number; baseUrl: string };
  const exited = once(child, 'exit');
  return {
    baseUrl,
    cpuMicros: async () => ((await (await fetch(`http://127.0.0.1:${port}/control/stats`)).json()) as { cpuMicros: number }).cpuMicros,
    close: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** `floor`, or an isolation of ours with its greatest number of threads, for example `shared:2`, `dedicated:64`. */
export type TargetName = string;

export interface Target {
  readonly name: TargetName;
  readonly agent: AgentProcess;
  /** From the start of the process to the answer of `initialize`. */
  readonly initializeMs: number;
  /** Ends the agent; milliseconds until its exit. */
  readonly close: () => Promise<number>;
}

export async function startTarget(name: TargetName, model: ModelServerProcess): Promise<Target> {
  const stateDir = mkdtempSync(join(tmpdir(), 'dsh-acp-bench-'));
  const start = performance.now();
  const agent = new AgentProcess(commandFor(name, model.baseUrl, stateDir), { HOME: stateDir });
  await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const initializeMs = performance.now() - start;
  return {
    name,
    agent,
    initializeMs,
    close: async () => {
      const exitMs = await agent.close();
      rmSync(stateDir, { recursive: true, force: true });
      return exitMs;
    },
  };
}

function commandFor(name: TargetName, baseUrl: string, stateDir: string): string[] {
  if (name === 'floor') return [process.execPath, join(built, 'bench', 'load', 'floor-agent.js'), `${baseUrl}/chat/completions`];
  const [isolation, threads] = name.split(':');
  const flags = ['--state-dir', stateDir, '--base-url', baseUrl, '--model', 'bench', '--isolation', isolation ?? 'shared'];
  if (threads !== undefined) flags.push('--max-threads', threads);
  return [process.execPath, cli, ...flags];
}
