/**
 * The load bench: N sessions × 200 tokens over real stdio, our server beside the floor agent in the same run.
 *
 * `node build/bench/load/load.js [--targets floor,shared,dedicated] [--sessions 1,10,50,200] [--delays 0,5] [--rounds 3]
 * [--json FILE]`. Rounds of one row: the first is cold; warm figures are the best total and the mean CPU of the others.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { percentile, type RoundResult, runRound } from './round.ts';
import { type ModelServerProcess, startModelServer, startTarget, type TargetName } from './targets.ts';

const { values } = parseArgs({
  options: {
    targets: { type: 'string', default: 'floor,shared,dedicated' },
    sessions: { type: 'string', default: '1,10,50,200' },
    delays: { type: 'string', default: '0,5' },
    tokens: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'string' },
  },
});

export interface LoadRow {
  readonly target: TargetName;
  readonly sessions: number;
  readonly delayMs: number;
  readonly coldMs: number;
  readonly warmMs: number;
  readonly cpuUsPerToken: number;
  readonly mainUsPerToken: number;
  readonly firstTokenP50: number;
  readonly firstTokenP99: number;
  readonly initializeMs: number;
  readonly newSessionP50: number;
  readonly newSessionP99: number;
  readonly pssMb: readonly [idle: number, open: number, after: number];
  readonly threads: number;
  readonly exitMs: number;
  readonly wrong: number;
}

async function measure(target: TargetName, sessions: number, delayMs: number, model: ModelServerProcess): Promise<LoadRow> {
  const { agent, initializeMs, close } = await startTarget(target, model);
  const idleMb = agent.pssMb();
  const ids: string[] = [];
  const newMs: number[] = [];
  for (let i = 0; i < sessions; i++) {
    const start = performance.now();
    const { sessionId } = await agent.request('session/new', { cwd: process.cwd(), mcpServers: [] });
    newMs.push(performance.now() - start);
    ids.push(sessionId);
  }
  const openMb = agent.pssMb();
  const rounds: RoundResult[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    rounds.push(await runRound(agent, ids, { tokens: Number(values.tokens), delayMs }));
  }
  const [cold, ...warm] = rounds as [RoundResult, ...RoundResult[]];
  const measured = warm.length === 0 ? [cold] : warm;
  const afterMb = agent.pssMb();
  const threads = agent.threads();
  const best = measured.toSorted((a, b) => a.totalMs - b.totalMs)[0]!;
  return {
    target,
    sessions,
    delayMs,
    coldMs: cold.totalMs,
    warmMs: best.totalMs,
    cpuUsPerToken: mean(measured.map((round) => round.cpuUsPerToken)),
    mainUsPerToken: mean(measured.map((round) => round.mainUsPerToken)),
    firstTokenP50: best.firstTokenMs.p50,
    firstTokenP99: best.firstTokenMs.p99,
    initializeMs,
    newSessionP50: percentile(newMs, 50),
    newSessionP99: percentile(newMs, 99),
    pssMb: [idleMb, openMb, afterMb],
    threads,
    exitMs: await close(),
    wrong: rounds.reduce((sum, round) => sum + round.wrong, 0),
  };
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

function print(row: LoadRow): void {
  const cells = [
    row.target.padEnd(12),
    String(row.sessions).padStart(5),
    String(row.delayMs).padStart(3),
    row.coldMs.toFixed(0).padStart(7),
    row.warmMs.toFixed(0).padStart(7),
    row.cpuUsPerToken.toFixed(1).padStart(8),
    row.mainUsPerToken.toFixed(1).padStart(8),
    `${row.firstTokenP50.toFixed(0)}/${row.firstTokenP99.toFixed(0)}`.padStart(10),
    row.initializeMs.toFixed(0).padStart(6),
    `${row.newSessionP50.toFixed(1)}/${row.newSessionP99.toFixed(1)}`.padStart(10),
    row.pssMb
      .map((mb) => mb.toFixed(0))
      .join('>')
      .padStart(13),
    row.exitMs.toFixed(0).padStart(6),
    row.wrong === 0 ? '' : `  ${row.wrong} wrong texts`,
  ];
  process.stdout.write(`${cells.join(' ')}\n`);
}

const model = await startModelServer();
const rows: LoadRow[] = [];
process.stdout.write(
  'target           N   D    cold    warm  cpu/tok main/tok  first p50/p99  init  new p50/99  PSS MB idle>new>after  exit\n',
);
for (const delayMs of values.delays.split(',').map(Number)) {
  for (const sessions of values.sessions.split(',').map(Number)) {
    for (const target of values.targets.split(',')) {
      const row = await measure(target, sessions, delayMs, model);
      rows.push(row);
      print(row);
    }
  }
}
await model.close();
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, undefined, 1)}\n`);
process.exitCode = rows.some((row) => row.wrong > 0) ? 1 : 0;
