/** What the bench does with its results when all parts have run: compares them with the record, and records them. */
import type { Machine } from '../machine.ts';
import type { BenchRun } from '../run.ts';
import { compareRuns, comparisonText } from './compare-runs.ts';
import { machineClassText } from './machine-class.ts';
import { countResults, type Provenance, readParts, recordParts, type Results, resultsSince } from './record.ts';

export interface RanPart {
  readonly name: string;
  readonly results: Results;
  /** No text was wrong, no frame was lost. */
  readonly sound: boolean;
}

/** Runs a part and takes apart from the bench what it has left there. */
export async function runAndKeep(bench: BenchRun, name: string, run: () => Promise<void>): Promise<RanPart> {
  const before = countResults(bench);
  const faults = bench.faults.length;
  await run();
  return { name, results: resultsSince(bench, before), sound: bench.faults.length === faults };
}

/** Prints what changed; gives how much became slower. `withNotes` also tells what has no floor, and that there is no record. */
export function printGuard(folder: string, machine: Machine, parts: readonly RanPart[], withNotes: boolean): number {
  const recorded = readParts(folder, machine);
  if (recorded.length === 0) {
    if (withNotes) process.stdout.write(`\nno record for this machine class: ${machineClassText(machine)}\n`);
    return 0;
  }
  const comparison = compareRuns(parts, recorded);
  const last = recorded.at(-1)!;
  const head = `Beside what was recorded for ${machineClassText(machine)}, last on ${last.at.slice(0, 10)} at ${last.commit}`;
  process.stdout.write(`\n${[head, ...comparisonText(comparison, withNotes)].join('\n')}\n`);
  return comparison.slower.length;
}

/** Keeps the parts that were sound. */
export function recordRun(folder: string, machine: Machine, parts: readonly RanPart[], run: Omit<Provenance, 'commit'>): void {
  const sound = parts.filter((part) => part.sound);
  const kept = sound.map(({ name, results }) => ({ name, ...run, commit: machine.commit, results }));
  const { file, refused } = recordParts(folder, machine, kept);
  const lines = [
    `recorded in ${file}: ${
      kept
        .map(({ name }) => name)
        .filter((name) => !refused.includes(name))
        .join(', ') || 'nothing'
    }`,
    ...refused.map((name) => `${name} was not recorded: its record is of a run with --full`),
    ...parts.filter((part) => !part.sound).map(({ name }) => `${name} was not recorded: it had faults`),
  ];
  process.stdout.write(`\n${lines.join('\n')}\n`);
}
