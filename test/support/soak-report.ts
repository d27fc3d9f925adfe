/** What a soak found: figures, what each is held to, and one block of lines for people. */
import { cores, type Growth, growthOf, type Measure, measures, percentile, type Sample } from './soak-figures.ts';
import type { Latency } from './soak-server.ts';

/** A quiet time and the storm behind it. */
export interface Cycle {
  readonly quiet: Block;
  readonly storm: Block;
}

export interface Block {
  /** Seconds since the start. */
  readonly from: number;
  readonly to: number;
  readonly latencies: readonly Latency[];
  /** Share of the machine that something other than the soak has used, from 0 to 1. */
  readonly others: number;
  readonly ours: number;
}

/** `not judged` says why: the run was too short, or others disturbed it. */
export interface Verdict {
  readonly what: string;
  readonly found: string;
  readonly bound: string;
  readonly verdict: 'held' | 'broken' | `not judged: ${string}`;
}

export interface SoakSummary {
  readonly seconds: number;
  readonly sessions: number;
  readonly seed: number;
  readonly cores: number;
  readonly node: string;
  readonly answered: number;
  readonly logs: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly cycles: readonly {
    readonly quietP99: number;
    readonly stormP99: number;
    readonly deltas: number;
    readonly others: readonly [number, number];
  }[];
  readonly growth: Readonly<Record<string, Readonly<Record<Measure, Growth>>>>;
  /** Of each server, once all its sessions were closed. */
  readonly afterClose: Readonly<Record<string, Sample>>;
  readonly verdicts: readonly Verdict[];
  readonly complaints: readonly string[];
}

/** What may be gained from the first sample to the last: a share of the median and a constant. */
const bounds: Readonly<Record<Measure, readonly [share: number, constant: number]>> = {
  rssMb: [0.1, 24],
  fds: [0.05, 10],
  threads: [0.05, 6],
  children: [0.05, 10],
};
/** Growth over less says nothing: what is compiled and cached at first is no leak. */
const leastGrowthSeconds = 90;
/** Times the quiet p99; and milliseconds below which nothing is judged. */
const slower = { times: 2, leastMs: 20 };
/** A cycle in which others took more of the machine in the storm than before it, by this share, says nothing of the soak. */
const mostUnlike = 0.2;

const p99 = (latencies: readonly Latency[]): number =>
  percentile(
    latencies.map(({ ms }) => ms),
    0.99,
  );

export function cycleFigures({ quiet, storm }: Cycle): SoakSummary['cycles'][number] {
  return {
    quietP99: p99(quiet.latencies),
    stormP99: p99(storm.latencies),
    deltas: quiet.latencies.length + storm.latencies.length,
    others: [quiet.others, storm.others],
  };
}

export function judgeLatency(cycles: readonly Cycle[], isJudged: boolean): Verdict {
  const figures = cycles.map(cycleFigures);
  const alike = figures.filter(({ others: [before, during], deltas }) => during - before < mostUnlike && deltas > 0);
  const ratios = alike.map(({ quietP99, stormP99 }) => (stormP99 <= slower.leastMs ? 1 : stormP99 / Math.max(1, quietP99)));
  const [ratio, quiet, storm] = [
    percentile(ratios, 0.5),
    p99(cycles.flatMap((one) => one.quiet.latencies)),
    p99(cycles.flatMap((one) => one.storm.latencies)),
  ];
  return {
    what: 'p99 of undisturbed sessions',
    found: `${quiet.toFixed(1)} ms quiet, ${storm.toFixed(1)} ms in storms; ${ratio.toFixed(2)} times in the median of ${alike.length} cycles`,
    bound: `${slower.times} times, or ${slower.leastMs} ms`,
    verdict: latencyVerdict(ratio, alike.length, figures.length, isJudged),
  };
}

function latencyVerdict(ratio: number, alike: number, all: number, isJudged: boolean): Verdict['verdict'] {
  if (!isJudged) return 'not judged: too short';
  if (alike < Math.max(1, all / 3)) return 'not judged: others disturbed most cycles';
  return ratio <= slower.times ? 'held' : 'broken';
}

export function judgeGrowth(
  name: string,
  samples: readonly Sample[],
  from: number,
): { readonly growth: Record<Measure, Growth>; readonly verdicts: Verdict[] } {
  const growth = Object.fromEntries(measures.map((measure) => [measure, growthOf(samples, measure, from)])) as Record<Measure, Growth>;
  const seconds = (samples.at(-1)?.at ?? 0) - from;
  const verdicts = measures.map((measure): Verdict => {
    const { grown, median, perMinute } = growth[measure];
    const [share, constant] = bounds[measure];
    const most = median * share + constant;
    const isShort = seconds < leastGrowthSeconds;
    return {
      what: `${name}: ${measure}`,
      found: `median ${median.toFixed(0)}, ${signed(perMinute, 2)} a minute, ${signed(grown, 1)} in all`,
      bound: `${signed(most, 0)} in all`,
      verdict: isShort ? 'not judged: too short' : grown <= most ? 'held' : 'broken',
    };
  });
  return { growth, verdicts };
}

function signed(value: number, digits: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(digits)}`;
}

export function summaryLines(summary: SoakSummary): string[] {
  const { seconds, sessions, seed, node, answered, logs, counts, cycles, verdicts, complaints } = summary;
  const share = (pick: 0 | 1): string =>
    `${(
      100 *
        percentile(
          cycles.map(({ others }) => others[pick]),
          0.5,
        )
    ).toFixed(0)} %`;
  const wide = Math.max(...verdicts.map(({ what }) => what.length));
  return [
    `soak: ${sessions} sessions for ${(seconds / 60).toFixed(1)} minutes on ${cores} cores, Node ${node}, seed ${seed}`,
    `others used ${share(0)} of the machine in quiet times, ${share(1)} in storms (medians)`,
    `answered ${answered} requests; ${logs} logs read whole`,
    Object.entries(counts)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, times]) => `${name} ${times}`)
      .join(', '),
    ...verdicts.map(
      ({ what, found, bound, verdict }) =>
        `${verdict.startsWith('not') ? '?' : verdict === 'held' ? '✓' : '✗'} ${what.padEnd(wide)}  ${found}  (${bound})${verdict === 'held' ? '' : `: ${verdict}`}`,
    ),
    complaints.length === 0 ? 'all of it held' : `${complaints.length} things did not hold`,
  ];
}
