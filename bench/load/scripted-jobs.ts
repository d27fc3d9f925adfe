/**
 * Jobs without a model: small workspaces, the commands that the scripted model works through in each, and the proof that they
 * were done. The same job is given to one server with many sessions, to a server per job, and to the batch runner.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AgentProcess } from './agent-process.ts';

export const cli = fileURLToPath(new URL('../../../dist/main/cli.js', import.meta.url));

/** Five tool calls: two reads beside each other, a search, an edit, a command. */
export const script = [
  'read notes.txt',
  '& read numbers.txt',
  'grep alpha',
  'edit notes.txt /alpha/omega/',
  'run wc -l < numbers.txt > lines.txt',
  'say done',
].join('\n');
export const toolCallsPerJob = 5;

const numbers = `${Array.from({ length: 200 }, (_, index) => `number ${index}`).join('\n')}\n`;

export class Workspaces {
  readonly root = mkdtempSync(join(tmpdir(), 'dsh-acp-jobs-'));

  /** `count` fresh workspaces; their paths. */
  make(count: number): string[] {
    const batch = mkdtempSync(join(this.root, 'batch-'));
    return Array.from({ length: count }, (_, index) => {
      const path = join(batch, String(index));
      mkdirSync(path);
      writeFileSync(join(path, 'notes.txt'), `job ${index}: alpha\n`);
      writeFileSync(join(path, 'numbers.txt'), numbers);
      return path;
    });
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** How many of the workspaces do not hold what the job makes of them. */
export function undone(paths: readonly string[]): number {
  return paths.filter((path, index) => {
    try {
      const notes = readFileSync(join(path, 'notes.txt'), 'utf8');
      return notes !== `job ${index}: omega\n` || readFileSync(join(path, 'lines.txt'), 'utf8').trim() !== '200';
    } catch {
      return true; // A file is not there: the job was not done.
    }
  }).length;
}

export function serverFlags(stateDir: string, more: readonly string[] = []): string[] {
  const model = ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'];
  return ['--state-dir', stateDir, '--profile', 'automation', ...model, ...more];
}

/** A server with the automation profile, initialized. */
export async function startJobServer(stateDir: string, more: readonly string[] = []): Promise<AgentProcess> {
  const agent = new AgentProcess([process.execPath, cli, 'serve', ...serverFlags(stateDir, more)], { HOME: stateDir });
  await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  return agent;
}

/** Runs the job in the workspace, in a session of its own; the answer to its prompt. */
export async function runJob(
  agent: AgentProcess,
  cwd: string,
): Promise<{ readonly sessionId: string; readonly stopReason: string; readonly toolCalls: number }> {
  const { sessionId } = await agent.request('session/new', { cwd, mcpServers: [] });
  const answer = await agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: script }] });
  return { sessionId, stopReason: answer.stopReason, toolCalls: answer._meta['dsh-acp'].usage.toolCalls };
}
