/**
 * What is put under load, and the model server that feeds it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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
  /** Without the compiled code of an earlier start, as at the first start after an installation. */
  readonly noKeptCode?: boolean;
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
  if (options.noKeptCode !== true) await (codeKept ??= keepCode(model));
  const stateDir = mkdtempSync(join(tmpdir(), 'dsh-acp-bench-'));
  options.prepare?.(stateDir);
  const env = { HOME: stateDir, DSH_ACP_CODE_CACHE: options.noKeptCode === true ? 'off' : codeFolder };
  const start = performance.now();
  const agent = new AgentProcess(commandFor(name, { baseUrl: model.baseUrl, stateDir, ...options }), env);
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

/** What every start but the first one after an installation finds. */
const codeFolder = join(tmpdir(), `dsh-acp-bench-code-${process.pid}`);
let codeKept: Promise<void> | undefined;
/** A server keeps its code two seconds after its start, and that of its threads two seconds after the first turn. */
const codeKeptMs = 3_000;

async function keepCode(model: ModelServerProcess): Promise<void> {
  process.once('exit', () => rmSync(codeFolder, { recursive: true, force: true }));
  const stateDir = mkdtempSync(join(tmpdir(), 'dsh-acp-bench-'));
  const env = { HOME: stateDir, DSH_ACP_CODE_CACHE: codeFolder };
  const agent = new AgentProcess(commandFor('dedicated', { baseUrl: model.baseUrl, stateDir }), env);
  try {
    await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    await agent.prompt(await agent.newSession(), { tokens: 3 });
    await sleep(codeKeptMs);
    await agent.close();
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
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
