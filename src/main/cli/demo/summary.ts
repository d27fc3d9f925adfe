/** The table at the end of the demo. Threads are counted in the sessions' logs, where each attachment is written down. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionRun } from './session-run.ts';

export interface DemoResult {
  readonly runs: readonly SessionRun[];
  readonly seconds: number;
  readonly initializeMs: number;
  readonly stateDir: string;
  readonly workspaces: string;
  readonly exit: string;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function median(numbers: readonly number[]): number | undefined {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function threadIdOf(line: string): number | undefined {
  if (!line.includes('"thread/attached"')) return undefined;
  const event = JSON.parse(line) as { type?: unknown; data?: { threadId?: unknown } };
  return event.type === 'thread/attached' && typeof event.data?.threadId === 'number' ? event.data.threadId : undefined;
}

/** How many threads the logs name, and how many events they hold. */
export async function readLogs(stateDir: string): Promise<{ threads: number; events: number; files: number }> {
  const names = await readdir(stateDir, { recursive: true });
  const threads = new Set<number>();
  let events = 0;
  const logs = names.filter((name) => name.endsWith('.jsonl'));
  for (const name of logs) {
    const lines = (await readFile(join(stateDir, name), 'utf8')).split('\n').filter((line) => line !== '');
    events += lines.length;
    for (const line of lines) {
      const id = threadIdOf(line);
      if (id !== undefined) threads.add(id);
    }
  }
  return { threads: threads.size, events, files: logs.length };
}

function toolText(runs: readonly SessionRun[]): string {
  const kinds = new Map<string, number>();
  for (const run of runs) for (const [kind, count] of run.toolKinds) kinds.set(kind, (kinds.get(kind) ?? 0) + count);
  const parts = [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, count]) => `${kind} ${count}`);
  return `${sum([...kinds.values()])} (${parts.join(', ')})`;
}

/** Lines for stdout, with a newline at the end. */
export async function summaryText(result: DemoResult): Promise<string> {
  const { runs } = result;
  const logs = await readLogs(result.stateDir);
  const ended = runs.flatMap((run) => run.stopReasons);
  const first = median(runs.flatMap((run) => run.firstText));
  const mended = runs.filter((run) => run.state === 'done').length;
  const rows: [string, string][] = [
    ['sessions', `${runs.length} on one connection to one server process`],
    ['threads', `${logs.threads} worker threads ran them`],
    ['turns', `${ended.length} (${ended.filter((reason) => reason === 'end_turn').length} ended with end_turn)`],
    ['tool calls', toolText(runs)],
    ['permissions', `${sum(runs.map((run) => run.permissions))} asked, each allowed once`],
    ['updates', `${sum(runs.map((run) => run.updates))} streamed`],
    ['first text', first === undefined ? 'none' : `${first.toFixed(0)} ms after the prompt (median)`],
    ['initialize', `${result.initializeMs.toFixed(0)} ms after the start of the process`],
    ['time', `${result.seconds.toFixed(1)} s in all; the server ended with ${result.exit}`],
    ['checked', `${mended} of ${runs.length} workspaces: the file is mended on disk, the project's tests failed before and pass now`],
    ['logs', `${result.stateDir} (${logs.files} logs, ${logs.events} lines)`],
    ['workspaces', result.workspaces],
  ];
  const problems = runs.flatMap((run) => run.problems.map((problem) => `${run.label}: ${problem}`));
  const tail = problems.length === 0 ? '' : `\nfailed:\n${problems.map((problem) => `  ${problem}\n`).join('')}`;
  return `\n${rows.map(([name, text]) => `${name.padEnd(12)} ${text}\n`).join('')}${tail}`;
}
