/**
 * What the parts of the bench share while they run, and what they leave behind: figures to hold, rows of load, faults.
 */
import type { ModelServerProcess } from './load/targets.ts';
import { printCurve } from './growth/curve.ts';
import type { LoadRow } from './load/compare.ts';
import type { LoadReport } from './load/load-report.ts';
import type { LoadShape } from './load/load-shape.ts';
import type { PeersOptions } from './peers/peers-options.ts';

/** A line of the table "Sizes that must hold". */
export interface Figure {
  readonly what: string;
  /** As the design states it; `–` where it states nothing. */
  readonly target: string;
  readonly measured: string;
  /** Quotient to the floor agent in the same run, where both were measured. */
  readonly toFloor?: number;
  /** Between which the median of such quotients lies, by `ratioRange`. */
  readonly toFloorRange?: readonly [low: number, high: number];
  /** `undefined` where the design states no target. */
  readonly holds?: boolean;
  /** The same as numbers, in the units that the text has. */
  readonly values: Readonly<Record<string, number>>;
}

/** How one cost grows with one size; drawn as a plot each. */
export interface GrowthCurve {
  /** The cost, for example `memory of an open session`. */
  readonly what: string;
  readonly unit: string;
  /** The size, for example `sessions`. */
  readonly over: string;
  /** Smallest size first; `low` and `high` are the extremes of the repeats. */
  readonly points: readonly { readonly size: number; readonly cost: number; readonly low?: number; readonly high?: number }[];
  /** Of `cost = c × size^exponent`, fitted by least squares on logarithms to the points where the size dominates. */
  readonly exponent: number;
  /** The greatest exponent that is no fault of ours: 0.1 for what must be flat, 1.1 for what may be linear. */
  readonly most: number;
  /** The exponent is of the points from this size on; absent where it is of all. */
  readonly from?: number;
}

/** One agent at one load, measured in turns with ours. Ratios are medians over pairs of rounds: theirs divided by ours. */
export interface PeerRow {
  /** `ours`, `floor`, `one-thread`, `process-per-session`, or the name of a peer. */
  readonly agent: string;
  readonly version: string;
  readonly runtime: string;
  readonly sessions: number;
  readonly tokens: number;
  readonly delayMs: number;
  readonly initializeMs: readonly number[];
  readonly newSessionMs: { readonly p50: number; readonly p99: number };
  readonly pssMb: { readonly idle: number; readonly open: number; readonly after: number };
  readonly processes: number;
  readonly coldMs: number;
  readonly totalMs: readonly number[];
  /** Of the whole process tree. */
  readonly cpuUsPerToken: readonly number[];
  readonly firstTokenMs: { readonly p50: number; readonly p99: number };
  readonly cancelMs?: { readonly p50: number; readonly max: number };
  readonly exitMs: number;
  readonly toOurs: {
    readonly total: number;
    readonly cpu: number;
    readonly memory: number;
    readonly firstToken: number;
    readonly initialize: number;
  };
  /** What it sends to the model for each prompt in a warm round, and how often it asks for itself (titles, memory); medians. */
  readonly toModel?: { readonly kbPerPrompt: number; readonly ownPerPrompt: number };
  /** Texts that came wrong or not at all. */
  readonly wrong: number;
}

/** Added latency of deltas at one load, in milliseconds. */
export interface LatencyRow {
  readonly agent: string;
  readonly sessions: number;
  /** Deltas per second of all sessions together, as asked for. */
  readonly rate: number;
  readonly loop: 'open' | 'closed';
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** An agent that was not run, and what is needed to run it. */
export interface Skipped {
  readonly agent: string;
  readonly why: string;
}

/** What one call of a function or one message costs, in a process that does nothing else. */
export interface MicroRow {
  /** Name of the file in `bench/micro`. */
  readonly group: string;
  readonly what: string;
  /** Of one `unit`, in nanoseconds; one value for each repeat, each of which is a median. */
  readonly nanoseconds: readonly number[];
  /** What was done once, for example `frame`, `event`, `call`. */
  readonly unit: string;
  /** Where what is done has a size. */
  readonly bytes?: number;
}

export class BenchRun {
  readonly model: ModelServerProcess;
  /** The whole matrix, and more repeats. */
  readonly full: boolean;
  /** The one load that the part `load` is to run, instead of its own. */
  readonly shape: LoadShape | undefined;
  /** What the part `peers` compares; all there is when left out. */
  readonly peersOptions: PeersOptions | undefined;
  readonly figures: Figure[] = [];
  readonly rows: LoadRow[] = [];
  readonly loads: LoadReport[] = [];
  readonly micros: MicroRow[] = [];
  readonly growth: GrowthCurve[] = [];
  readonly peers: PeerRow[] = [];
  readonly latencies: LatencyRow[] = [];
  readonly skipped: Skipped[] = [];
  /** Wrong texts, lost frames, failed requests: the only things that make the bench fail. */
  readonly faults: string[] = [];

  constructor(model: ModelServerProcess, full: boolean, shape?: LoadShape, peersOptions?: PeersOptions) {
    this.model = model;
    this.full = full;
    this.shape = shape;
    this.peersOptions = peersOptions;
  }

  /** Keeps a figure and prints it at once. */
  figure(figure: Figure): void {
    this.figures.push(figure);
    const { what, target, measured, toFloor } = figure;
    const ratio = toFloor === undefined ? '' : `, ${toFloor.toFixed(2)} × floor`;
    process.stdout.write(`  ${what}: ${measured}${ratio} (target ${target})\n`);
  }

  /** Keeps a curve and prints it at once. One that is too steep is told, and makes no fault. */
  curve(curve: GrowthCurve): void {
    printCurve(curve);
    // Small sizes alone say nothing that is worth keeping.
    if (!Number.isNaN(curve.exponent)) this.growth.push(curve);
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
