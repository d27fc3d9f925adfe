/**
 * What V8 leaves with `--cpu-prof`: a tree of calls and, for each sample, its node. Here it becomes stacks with a count each.
 *
 * Samples are counted, not their time: on a busy machine the time between two samples holds that of other processes.
 */

export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** From 0, as the column; -1 where there is no source. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** As V8 writes it; times in microseconds of the machine's monotonic clock, which is also that of `process.hrtime`. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame; readonly children?: readonly number[] }[];
  readonly startTime: number;
  readonly endTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Of the same clock, in microseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface CountedStack {
  /** Outermost first; without V8's `(root)`. */
  readonly frames: readonly CallFrame[];
  readonly count: number;
}

/** The stacks of the samples that lie in one of the spans; all of them when none is given. What was idle is left out. */
export function countStacks(profile: CpuProfile, spans?: readonly Span[]): CountedStack[] {
  const counts = new Map<number, number>();
  let at = profile.startTime;
  for (const [index, id] of profile.samples.entries()) {
    at += profile.timeDeltas[index] ?? 0;
    const time = at;
    if (spans === undefined || spans.some(({ from, to }) => time >= from && time <= to)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  const frames = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const parents = new Map(profile.nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)));
  const stacks: CountedStack[] = [];
  for (const [id, count] of counts) {
    const stack: CallFrame[] = [];
    for (let node: number | undefined = id; node !== undefined; node = parents.get(node)) stack.unshift(frames.get(node)!);
    const [, ...called] = stack;
    if (called[0]?.functionName !== '(idle)' && called.length > 0) stacks.push({ frames: called, count });
  }
  return stacks;
}

/** Which of the server's threads left it: each loads a file that no other loads. */
export function threadOf({ nodes }: CpuProfile): 'main' | 'session' | 'broker' | 'other' {
  const has = (file: string): boolean => nodes.some(({ callFrame }) => callFrame.url.endsWith(file));
  if (has('/main/cli.js')) return 'main';
  if (has('/worker/session-host.cjs') || has('/worker/session-thread.cjs')) return 'session';
  return has('/worker/broker.cjs') ? 'broker' : 'other';
}
