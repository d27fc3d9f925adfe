/**
 * What the event log costs: appending, barriers, creating, opening and reading. Prints one table, and behind it what an event costs.
 *
 * Run the compiled file: `node --expose-gc build/bench/micro/log.js [megabytes]`. The logs go below the directory in
 * DSH_ACP_BENCH_DIR, by default the system's directory for temporary files: what a sync costs is a matter of that disk.
 */
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventInput, SessionHeader } from '../../src/shared/events.ts';
import { sealLine } from '../../src/shared/log/line-seal.ts';
import { listSessions } from '../../src/shared/log/list-sessions.ts';
import { readSessionHeader } from '../../src/shared/log/read-header.ts';
import { createSessionFile, type SessionPaths, sessionPaths } from '../../src/shared/log/session-paths.ts';
import { ChunkMerger } from '../../src/worker/log/chunk-merger.ts';
import { EventLog } from '../../src/worker/log/event-log.ts';
import { readLog } from '../../src/worker/log/log-reader.ts';
import { measureAll } from './measured.ts';

const megabytes = Number(process.argv[2] ?? 200);
const stateDir = mkdtempSync(join(process.env['DSH_ACP_BENCH_DIR'] ?? tmpdir(), 'dsh-acp-bench-'));
const rows: [string, string][] = [];

function idOf(index: number): string {
  return `00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;
}

function headerOf(index: number): SessionHeader {
  return {
    type: 'session',
    version: 1,
    id: idOf(index),
    createdAt: new Date().toISOString(),
    cwd: '/srv/project',
    agent: { name: 'bench', version: '0' },
  };
}

function percentile(times: number[], share: number): string {
  times.sort((a, b) => a - b);
  return `${(times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(3)} ms`;
}

async function timed(count: number, action: (index: number) => unknown): Promise<string> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const started = performance.now();
    await action(index);
    times.push(performance.now() - started);
  }
  return `p50 ${percentile(times, 0.5)}, p99 ${percentile(times, 0.99)}`;
}

function open(paths: SessionPaths): Promise<EventLog> {
  return EventLog.open({ path: paths.log, lockPath: paths.lock, serverNonce: 'bench', threadId: 0, onEvent: () => {} });
}

/** About 250 bytes a line, as a session's log has on the average. */
const chunk: EventInput = {
  type: 'assistant/chunk',
  data: { turn: 1, step: 1, messageId: '0192f3c4-1111-7abc-8def-0123456789ab', kind: 'text', text: 'Words of an answer. '.repeat(4) },
};

/** On a busy machine this says more than the time on the clock. */
function perCpuSecond(bytes: number, since: NodeJS.CpuUsage): string {
  const { user, system } = process.cpuUsage(since);
  return `${Math.round((bytes / 1024 / 1024 / (user + system)) * 1e6)} MB per CPU second`;
}

/** Begins a new turn, so that the tracker has something to track. */
const turnStart: EventInput = { type: 'turn/start', data: { turn: 1 } };

async function benchSessions(): Promise<void> {
  rows.push(['create a session file, 2,000', await timed(2000, (index) => createSessionFile(stateDir, headerOf(index)))]);
  rows.push(['read a header, 2,000', await timed(2000, (index) => readSessionHeader(stateDir, idOf(index)))]);
  rows.push(['list the first page of 2,000', await timed(5, () => listSessions(stateDir))]);
  rows.push([
    'open and close an empty log, nothing synced before',
    await timed(50, async (index) => (await open(sessionPaths(stateDir, idOf(index)))).close()),
  ]);
}

async function benchAppend(): Promise<void> {
  const log = await open(sessionPaths(stateDir, idOf(100)));
  const count = 100_000;
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (let index = 0; index < count; index += 1) {
    log.append(chunk);
  }
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  rows.push(['append', `${Math.round(count / seconds / 1000)} k events/s, ${((user + system) / count).toFixed(1)} µs CPU each`]);
  await log.barrier();
  rows.push(['append + barrier', await timed(200, () => (log.append(chunk), log.barrier()))]);
  rows.push(['barrier with nothing new', await timed(2000, () => log.barrier())]);
  await log.close();
  const logs = await Promise.all(Array.from({ length: 64 }, (_, index) => open(sessionPaths(stateDir, idOf(200 + index)))));
  const all = async () => Promise.all(logs.map((each) => (each.append(chunk), each.barrier())));
  rows.push(['64 logs: first append + barrier (syncs the directory)', await timed(1, all)]);
  rows.push(['64 logs: append + barrier at once', await timed(20, all)]);
  await Promise.all(logs.map((each) => each.close()));
}

function benchMerger(): void {
  let emitted = 0;
  const merger = new ChunkMerger({ emit: () => (emitted += 1), schedule: () => () => {} });
  const count = 2_000_000;
  const delta = { ...chunk.data, text: ' word' } as Parameters<ChunkMerger['add']>[0];
  const started = performance.now();
  for (let index = 0; index < count; index += 1) {
    merger.add(delta);
  }
  merger.flush();
  rows.push(['merge a delta', `${(((performance.now() - started) * 1e6) / count).toFixed(0)} ns, ${count} deltas in ${emitted} records`]);
}

async function benchRead(): Promise<void> {
  const paths = createSessionFile(stateDir, headerOf(9_999_999));
  const fd = openSync(paths.log, 'a');
  let bytes = 0;
  let seq = 0;
  while (bytes < megabytes * 1024 * 1024) {
    const lines: Buffer[] = [];
    for (let index = 0; index < 200; index += 1, seq += 1) {
      const { type, data } = seq % 1000 === 0 ? turnStart : chunk;
      lines.push(sealLine(JSON.stringify({ type, seq, time: 1_700_000_000_000, data })));
    }
    bytes += writeSync(fd, Buffer.concat(lines));
  }
  closeSync(fd);
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const started = performance.now();
  const cpu = process.cpuUsage();
  const source = { fd: openSync(paths.log, 'r'), path: paths.log, size: statSync(paths.log).size };
  const { eventCount } = await readLog(source, (event) => {
    if (event.seq % 10_000 === 0) {
      peak = Math.max(peak, process.memoryUsage().rss);
    }
  });
  closeSync(source.fd);
  const seconds = (performance.now() - started) / 1000;
  const speed = `${Math.round(source.size / 1024 / 1024 / seconds)} MB/s, ${perCpuSecond(source.size, cpu)}, ${Math.round(eventCount / seconds / 1000)} k events/s`;
  rows.push([`read ${megabytes} MB, ${eventCount} events of ${Math.round(source.size / eventCount)} B`, speed]);
  rows.push(['RSS before and at most while reading', `${Math.round(before / 1024 / 1024)}, ${Math.round(peak / 1024 / 1024)} MB`]);
  const opening = performance.now();
  const openingCpu = process.cpuUsage();
  const log = await open(paths);
  const openingMs = performance.now() - opening;
  rows.push(['open it: lock, read, track, close the turn', `${Math.round(openingMs)} ms, ${perCpuSecond(source.size, openingCpu)}`]);
  await log.close();
}

/** Of a log that grows with each run; and of one of some megabytes. */
async function benchEvents(): Promise<void> {
  const log = await open(sessionPaths(stateDir, idOf(300)));
  const count = 2000;
  const append = (): void => {
    for (let index = 0; index < count; index += 1) log.append(chunk);
  };
  const paths = sessionPaths(stateDir, idOf(301));
  const stored = await open(paths);
  for (let index = 0; index < 20_000; index += 1) stored.append(chunk);
  await stored.barrier();
  await stored.close();
  const source = { fd: openSync(paths.log, 'r'), path: paths.log, size: statSync(paths.log).size };
  const bytes = Math.round(source.size / 20_000);
  let seen = 0;
  const replay = (): Promise<unknown> => readLog(source, () => void (seen += 1));
  await measureAll('log', [
    { what: 'append', unit: 'event', count, bytes, run: append },
    { what: 'replay', unit: 'event', count: 20_000, bytes, run: replay },
    { what: 'append and barrier', unit: 'event', count: 1, run: () => (log.append(chunk), log.barrier()) },
  ]);
  if (seen === 0) throw new Error('Nothing was replayed.');
  closeSync(source.fd);
  await log.close();
}

try {
  // First, while the process is small: it measures memory.
  await benchRead();
  await benchSessions();
  await benchAppend();
  benchMerger();
  const width = Math.max(...rows.map(([what]) => what.length));
  for (const [what, figure] of rows) {
    process.stdout.write(`${what.padEnd(width)}  ${figure}\n`);
  }
  await benchEvents();
} finally {
  rmSync(stateDir, { recursive: true, force: true });
}
