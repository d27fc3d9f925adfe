/**
 * What the parts of the bench share while they run, and what they leave behind: figures to hold, rows of load, faults.
 */
import type { ModelServerProcess } from './load/targets.ts';
import type { LoadRow } from './load/compare.ts';

/** A line of the table "Sizes that must hold". */
export interface Figure {
  readonly what: string;
  /** As the design states it; `–` where it states nothing. */
  readonly target: string;
  readonly measured: string;
  /** Quotient to the floor agent in the same run, where both were measured. */
  readonly toFloor?: number;
  /** `undefined` where the design states no target. */
  readonly holds?: boolean;
  /** The same as numbers, in the units that the text has. */
  readonly values: Readonly<Record<string, number>>;
}

export class BenchRun {
  readonly model: ModelServerProcess;
  /** The whole matrix, and more repeats. */
  readonly full: boolean;
  readonly figures: Figure[] = [];
  readonly rows: LoadRow[] = [];
  /** Wrong texts, lost frames, failed requests: the only things that make the bench fail. */
  readonly faults: string[] = [];

  constructor(model: ModelServerProcess, full: boolean) {
    this.model = model;
    this.full = full;
  }

  /** Keeps a figure and prints it at once. */
  figure(figure: Figure): void {
    this.figures.push(figure);
    const { what, target, measured, toFloor } = figure;
    const ratio = toFloor === undefined ? '' : `, ${toFloor.toFixed(2)} × floor`;
    process.stdout.write(`  ${what}: ${measured}${ratio} (target ${target})\n`);
  }

  fault(text: string): void {
    this.faults.push(text);
    process.stdout.write(`  FAULT: ${text}\n`);
  }

  /** A fault unless nothing was wrong. */
  check(wrong: number, what: string): void {
    if (wrong !== 0) this.fault(`${what}: ${wrong} wrong`);
  }
}

/** A part of the bench; its name is what is chosen on the command line. */
export interface Part {
  readonly name: string;
  /** Only with `--full`, or when it is named. */
  readonly onlyFull?: boolean;
  run(bench: BenchRun): Promise<void>;
}
