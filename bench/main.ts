/**
 * `npm run bench`: what the server costs and how quick it is, beside a floor agent in the same run. See bench/README.md.
 *
 * Exit code 0 whatever the speed; 1 when a text was wrong, a frame was lost or a part failed, and with `--strict` when something became
 * slower; 2 for a wrong command line.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printGuard, type RanPart, recordRun, runAndKeep } from './guard/after-run.ts';
import { defaultShape, loadOptions, type LoadShape, loadShapeOf, loadUsage } from './load/load-shape.ts';
import { built, startModelServer } from './load/targets.ts';
import { CoreUse, machineFacts } from './machine.ts';
import { attachPart } from './parts/attach.ts';
import { cancelPart } from './parts/cancel.ts';
import { jobsPart } from './parts/jobs.ts';
import { latencyPart } from './parts/latency.ts';
import { growthParts } from './parts/growth.ts';
import { loadPart } from './parts/load.ts';
import { memoryPart } from './parts/memory.ts';
import { microPart } from './parts/micro.ts';
import { peersPart } from './parts/peers.ts';
import { ratesPart } from './parts/rates.ts';
import { stallPart } from './parts/stall.ts';
import { startupPart } from './parts/startup.ts';
import { stubPart } from './parts/stub.ts';
import { subagentsPart } from './parts/subagents.ts';
import { floorPart, steadyPart, targetsPart } from './parts/targets.ts';
import { teardownPart } from './parts/teardown.ts';
import { type PeersOptions, peersUsage, readPeersOptions } from './peers/peers-options.ts';
import { BenchRun, type Part } from './run.ts';
import { sizesTable } from './sizes-table.ts';

const parts: readonly Part[] = [
  startupPart,
  targetsPart,
  floorPart,
  steadyPart,
  loadPart,
  ratesPart,
  latencyPart,
  stubPart,
  attachPart,
  cancelPart,
  stallPart,
  teardownPart,
  memoryPart,
  jobsPart,
  subagentsPart,
  microPart,
  ...growthParts,
  peersPart,
];
const usage = `Usage: npm run bench -- [--full] [--json FILE] [--guard] [--strict] [--record] [NAME…]
       npm run bench -- report   (see npm run bench -- report --help)

  --full       the whole matrix of loads, all micro benches, more repeats
  --json FILE  all figures as JSON
  --guard      notes beside what became slower or faster since the last record of such a machine; that itself is always said
  --strict     exit code 1 when something became slower
  --record     keeps the parts that ran in bench/results, for this class of machines
  NAME         only the parts whose names contain it: ${parts.map((part) => part.name).join(', ')}

${loadUsage}
${peersUsage}`;
/** More than this of all cores in use before the bench does anything: its figures are not to be trusted. */
const busyPercent = 20;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface CommandLine {
  readonly full: boolean;
  readonly guard: boolean;
  readonly strict: boolean;
  readonly record: boolean;
  readonly json: string | undefined;
  readonly shape: LoadShape | undefined;
  readonly peersOptions: PeersOptions;
  readonly chosen: readonly Part[];
}

function readCommandLine(): CommandLine {
  const flag = { type: 'boolean', default: false } as const;
  const flags = { full: flag, guard: flag, strict: flag, record: flag } as const;
  const own = { ...flags, json: { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const;
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { ...own, ...loadOptions, peers: { type: 'string' } } });
  if (values.help === true) {
    process.stdout.write(usage);
    process.exit(0);
  }
  const unknown = positionals.filter((name) => !parts.some((part) => part.name.includes(name)));
  if (unknown.length > 0) throw new Error(`no part has a name with ${unknown.join(', ')} in it`);
  const isNamed = (part: Part): boolean => positionals.some((name) => part.name.includes(name));
  const isDefault = (part: Part): boolean => values.full || part.onlyFull !== true;
  const { peers, sessions, guard, strict, record, ...others } = values;
  const onlyPeers = positionals.join() === 'peers';
  const peersOptions = readPeersOptions({ peers, sessions: onlyPeers ? sessions : undefined });
  const shape = loadShapeOf(onlyPeers ? others : values);
  if (shape !== undefined && positionals.join() !== 'load') throw new Error('what describes a load goes with the part load alone');
  const chosen = shape === undefined ? parts.filter(positionals.length > 0 ? isNamed : isDefault) : [loadPart];
  if (record && (shape !== undefined || peers !== undefined || sessions !== undefined)) {
    throw new Error('--record keeps whole parts: it goes without --peers and what describes a load');
  }
  return { full: values.full, guard, strict, record, json: values.json, shape, peersOptions, chosen };
}

function commandLineOrExit(): ReturnType<typeof readCommandLine> {
  try {
    return readCommandLine();
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message}\n\n${usage}`);
    return process.exit(2);
  }
}

function load(): string {
  return loadavg()
    .map((one) => one.toFixed(2))
    .join(' ');
}

async function runPart(bench: BenchRun, part: Part): Promise<void> {
  const start = performance.now();
  print(`\n${part.name}`);
  try {
    await part.run(bench);
  } catch (error) {
    bench.fault(`${part.name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
  print(`  (${((performance.now() - start) / 1000).toFixed(1)} s)`);
}

const { full, guard, strict, record, json, shape, peersOptions, chosen } = commandLineOrExit();
const machine = machineFacts();
const use = new CoreUse();
const loadBefore = load();
await sleep(1000);
const busyBefore = use.percent();
print(
  `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB, ${machine.system}, node ${machine.node}, commit ${machine.commit}`,
);
print(`load average before: ${loadBefore}; ${busyBefore.toFixed(0)} % of all cores in use by others`);
const isBusy = busyBefore > busyPercent;
if (isBusy) print('WARNING: the machine is busy. Quotients to the floor say something, single figures do not.');

const model = await startModelServer();
const bench = new BenchRun(model, full, shape, peersOptions);
const start = performance.now();
const ran: RanPart[] = [];
for (const part of chosen) ran.push(await runAndKeep(bench, part.name, () => runPart(bench, part)));
await model.close();
use.percent();
await sleep(1000);
const busyAfter = use.percent();
const loadAfter = load();

print(`\nSizes that must hold\n${sizesTable(bench.figures)}`);
print(`load average before: ${loadBefore}, after: ${loadAfter} (the bench itself makes most of the latter)`);
if (isBusy || busyAfter > busyPercent) {
  print(`WARNING: others used ${busyBefore.toFixed(0)} % of all cores before and ${busyAfter.toFixed(0)} % after the run.`);
}
print(`${((performance.now() - start) / 1000).toFixed(0)} s; ${bench.faults.length === 0 ? 'all texts right, no frame lost' : 'FAULTS:'}`);
for (const fault of bench.faults) print(`- ${fault}`);
const at = new Date().toISOString();
const results = join(built, '..', 'bench', 'results');
const slower = printGuard(results, machine, ran, guard || strict);
if (record) recordRun(results, machine, ran, { at, full, seed: defaultShape.seed, busyBefore, busyAfter });
if (json !== undefined) {
  const { figures, rows, loads, growth, peers, latencies, micros, skipped, faults } = bench;
  const run = { machine, at, full, loadBefore, loadAfter, busyBefore, busyAfter };
  const all = { ...run, figures, rows, loads, growth, peers, latencies, micros, skipped, faults };
  writeFileSync(json, `${JSON.stringify(all, undefined, 1)}\n`);
}
// Not only the code: a part that failed may have left an agent behind, which ends when our pipes close.
process.exit(bench.faults.length > 0 || (strict && slower > 0) ? 1 : 0);
