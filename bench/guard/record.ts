/**
 * Results that are kept: a file for each class of machines, with the last run of each part and what it was run on.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Machine } from '../machine.ts';
import type { BenchRun } from '../run.ts';
import { type MachineKind, machineClass } from './machine-class.ts';

const kinds = ['figures', 'rows', 'loads', 'growth', 'peers', 'latencies', 'micros', 'skipped'] as const;

/** What parts of the bench leave, but for faults. */
export type Results = Pick<BenchRun, (typeof kinds)[number]>;

/** How and when a part was run. */
export interface Provenance {
  /** ISO 8601. */
  readonly at: string;
  readonly commit: string;
  readonly full: boolean;
  /** Of the times and orders that are drawn at random. */
  readonly seed: number;
  /** Percent of all cores that others used before and after the run. */
  readonly busyBefore: number;
  readonly busyAfter: number;
}

export interface RecordedPart extends Provenance {
  readonly name: string;
  readonly results: Results;
}

/** The file of a class: parts in the order of their names. */
export interface ClassRecord {
  readonly machine: Omit<Machine, 'commit'>;
  readonly parts: readonly RecordedPart[];
}

export function noResults(): Results {
  return { figures: [], rows: [], loads: [], growth: [], peers: [], latencies: [], micros: [], skipped: [] };
}

/** How many of each there are now; what a part adds is what comes behind them. */
export function countResults(results: Results): Readonly<Record<string, number>> {
  return Object.fromEntries(kinds.map((kind) => [kind, results[kind].length]));
}

export function resultsSince(results: Results, before: Readonly<Record<string, number>>): Results {
  return Object.fromEntries(kinds.map((kind) => [kind, results[kind].slice(before[kind])])) as unknown as Results;
}

interface OldRun extends Partial<Results>, Partial<Provenance> {}

/** Also what `--json` writes, and several such runs in one file; `undefined` for anything else. */
export function parseRecord(text: string): ClassRecord | undefined {
  // JSON has no NaN: what was none comes back as one.
  const file = JSON.parse(text, (_key, value: unknown) => (value === null ? Number.NaN : value)) as Partial<ClassRecord> &
    OldRun & { readonly machine?: Machine; readonly runs?: unknown };
  if (file.machine === undefined) return undefined;
  const { commit, ...machine } = file.machine;
  if (file.parts !== undefined) {
    return { machine, parts: file.parts.map((part) => ({ ...part, results: { ...noResults(), ...part.results } })) };
  }
  const runs = Array.isArray(file.runs) ? (file.runs as readonly OldRun[]) : [file];
  const parts = runs.map((run, index) => ({
    name: index === 0 ? 'run' : `run ${index + 1}`,
    at: run.at ?? '',
    commit: run.commit ?? commit,
    full: run.full ?? true,
    seed: run.seed ?? 1,
    busyBefore: run.busyBefore ?? Number.NaN,
    busyAfter: run.busyAfter ?? Number.NaN,
    results: resultsOf(run),
  }));
  return { machine, parts };
}

function resultsOf(run: Partial<Results>): Results {
  return Object.fromEntries(kinds.map((kind) => [kind, run[kind] ?? []])) as unknown as Results;
}

/** Of all files of a folder that are of this class, oldest part first; none when nothing was recorded. */
export function readParts(folder: string, kind: MachineKind): RecordedPart[] {
  return readClasses(folder).get(machineClass(kind))?.parts.slice() ?? [];
}

/** All files of a folder, by class. Parts that two files have are both there, the older one first. */
export function readClasses(folder: string): Map<string, ClassRecord> {
  const classes = new Map<string, ClassRecord>();
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
  for (const name of files.toSorted()) {
    const record = parseRecord(readFileSync(join(folder, name), 'utf8'));
    if (record === undefined) continue;
    const key = machineClass(record.machine);
    const parts = [...(classes.get(key)?.parts ?? []), ...record.parts];
    classes.set(key, { machine: record.machine, parts: parts.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)) });
  }
  return classes;
}

export interface Merged {
  readonly record: ClassRecord;
  /** Parts that stay as they were: a short run does not replace a full one. */
  readonly refused: readonly string[];
}

export function mergeParts(old: ClassRecord | undefined, machine: Omit<Machine, 'commit'>, added: readonly RecordedPart[]): Merged {
  const parts = new Map((old?.parts ?? []).map((part) => [part.name, part]));
  const refused: string[] = [];
  for (const part of added) {
    if (parts.get(part.name)?.full === true && !part.full) refused.push(part.name);
    else parts.set(part.name, part);
  }
  return { record: { machine, parts: [...parts.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)) }, refused };
}

/** Merges parts into the file of the machine's class; gives its path and what was refused. */
export function recordParts(folder: string, machine: Machine, parts: readonly RecordedPart[]): Merged & { readonly file: string } {
  const { cores, cpu, memoryGb, system, node } = machine;
  const file = join(folder, `${machineClass(machine)}.json`);
  const old = existsSync(file) ? parseRecord(readFileSync(file, 'utf8')) : undefined;
  const merged = mergeParts(old, { cores, cpu, memoryGb, system, node }, parts);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, recordText(merged.record));
  return { ...merged, file };
}

/** Four digits a number, one line an entry, nothing that is empty. */
export function recordText({ machine, parts }: ClassRecord): string {
  const text = (value: unknown): string =>
    JSON.stringify(value, (_key, one: unknown) => (typeof one === 'number' ? Number(one.toPrecision(4)) : one));
  const partText = ({ results, seed, ...part }: RecordedPart): string => {
    const filled = kinds.filter((kind) => results[kind].length > 0);
    const lists = filled.map((kind) => `   "${kind}": [\n${results[kind].map((entry) => `    ${text(entry)}`).join(',\n')}\n   ]`);
    // The seed is no measurement: all its digits stay.
    const head = `${text(part).slice(0, -1)},"seed":${seed}`;
    return `  ${head},"results":{\n${lists.join(',\n')}\n  }}`;
  };
  return `{\n "machine": ${JSON.stringify(machine)},\n "parts": [\n${parts.map(partText).join(',\n')}\n ]\n}\n`;
}
