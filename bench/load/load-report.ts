/** What a load has come to, and how it is printed. */
import type { Percentiles } from './histogram.ts';
import { type LoadShape, shapeText } from './load-shape.ts';
import { median, withSpread } from './statistics.ts';

/** Percentiles of each repeat, in order. */
export type RepeatedPercentiles = { readonly [key in keyof Percentiles]: readonly number[] };

/** Times are milliseconds; lists have a value for each measured repeat, in order. */
export interface LoadReport {
  readonly agent: 'ours' | 'floor';
  readonly shape: LoadShape;
  readonly seconds: readonly number[];
  readonly tokensPerSecond: readonly number[];
  readonly framesPerSecond: readonly number[];
  readonly bytesPerSecond: readonly number[];
  /** From the time at which the prompt was to be sent to its answer. */
  readonly turnMs: RepeatedPercentiles;
  /** From there to the first word at the client. */
  readonly firstTokenMs: RepeatedPercentiles;
  /** Of that, what the model has not taken: from the prompt to the model's reading of the request, and from its first delta to the client. Without tools. */
  readonly addedFirstMs?: RepeatedPercentiles;
  /** From the sending of a delta in the model server to the client. Not for a profile that shows no deltas. */
  readonly addedMs?: RepeatedPercentiles;
  /** How late the model server itself sent them, by its own plan. */
  readonly modelLateMs: RepeatedPercentiles;
  /** Microseconds for each token: of the agents with all their children, of their main threads, of the model server, of this client. */
  readonly cpuUsPerToken: {
    readonly tree: readonly number[];
    readonly main: readonly number[];
    readonly model: readonly number[];
    readonly client: readonly number[];
  };
  /** Of the first connection: what its main thread says of its own event loop, and how long it took to answer `_status` meanwhile. */
  readonly loop?: {
    readonly delayMs: { readonly p50: readonly number[]; readonly p99: readonly number[] };
    readonly statusMs: RepeatedPercentiles;
  };
  /** Of all connections together. */
  readonly memoryMb: {
    readonly rss: readonly number[];
    readonly rssPeak: number;
    readonly pss: { readonly idle: number; readonly open: number; readonly after: number };
  };
  /** Of each connection. */
  readonly initializeMs: readonly number[];
  /** `session/new`, or `session/resume` of sessions with a history; one after another. */
  readonly openMs: Percentiles;
  /** The first `session/set_mode` of sessions that are on no thread; one after another. */
  readonly attachMs?: Percentiles;
  readonly cancelMs?: Percentiles;
  /** Of each connection. */
  readonly exitMs: readonly number[];
  /** Words, turns, tool calls and files that are not as they should be. */
  readonly wrong: number;
}

/** From lists of one value for each repeat. */
export function inRepeats(all: readonly Percentiles[]): RepeatedPercentiles {
  const of = (key: keyof Percentiles): number[] => all.map((one) => one[key]);
  return { p50: of('p50'), p95: of('p95'), p99: of('p99'), max: of('max') };
}

export function printLoad(report: LoadReport): void {
  const { agent, shape, cpuUsPerToken: cpu, loop, memoryMb: mb } = report;
  const lines = [
    `${agent}: ${shapeText(shape)}`,
    `  seconds ${withSpread(report.seconds, 2)}; tokens/s ${withSpread(report.tokensPerSecond, 0)}; frames/s ${withSpread(report.framesPerSecond, 0)}`,
    `  turn ${percentilesText(report.turnMs)}`,
    `  first word ${percentilesText(report.firstTokenMs)}`,
    ...(report.addedFirstMs === undefined ? [] : [`  first word, without the model ${percentilesText(report.addedFirstMs)}`]),
    ...(report.addedMs === undefined ? [] : [`  added to a delta ${percentilesText(report.addedMs)}`]),
    `  the model server's own lateness ${percentilesText(report.modelLateMs)}`,
    `  CPU µs/token: ${withSpread(cpu.tree)}, of it main ${withSpread(cpu.main)}; model server ${withSpread(cpu.model)}, client ${withSpread(cpu.client)}`,
    ...(loop === undefined
      ? []
      : [
          `  main's loop late by p50 ${withSpread(loop.delayMs.p50)}, p99 ${withSpread(loop.delayMs.p99)}; _status ${percentilesText(loop.statusMs)}`,
        ]),
    `  MB: RSS ${withSpread(mb.rss, 0)}, at most ${mb.rssPeak.toFixed(0)}; PSS ${[mb.pss.idle, mb.pss.open, mb.pss.after].map((one) => one.toFixed(0)).join(' > ')}`,
    `  ms: ${singleText(report)}`,
  ];
  process.stdout.write(`${lines.map((line) => `  ${line}`).join('\n')}\n`);
}

function singleText(report: LoadReport): string {
  const { initializeMs, openMs, attachMs, cancelMs, exitMs } = report;
  return [
    `initialize ${withSpread(initializeMs, 0)}`,
    `${report.shape.history > 0 ? 'session/resume' : 'session/new'} p50 ${openMs.p50.toFixed(2)}, p99 ${openMs.p99.toFixed(1)}`,
    ...(attachMs === undefined ? [] : [`attach p50 ${attachMs.p50.toFixed(1)}, max ${attachMs.max.toFixed(1)}`]),
    ...(cancelMs === undefined ? [] : [`cancel p50 ${cancelMs.p50.toFixed(1)}, max ${cancelMs.max.toFixed(1)}`]),
    `exit ${withSpread(exitMs, 0)}`,
  ].join('; ');
}

/** Each with its spread over the repeats. */
function percentilesText({ p50, p95, p99, max }: RepeatedPercentiles): string {
  const digits = median(p50) < 10 ? 2 : 0;
  const all = [
    ['p50', p50],
    ['p95', p95],
    ['p99', p99],
    ['max', max],
  ] as const;
  return `ms ${all.map(([name, values]) => `${name} ${withSpread(values, digits)}`).join(', ')}`;
}
