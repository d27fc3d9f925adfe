/**
 * Stacks of many profiles as one tree of source functions, and what is summed up from it.
 */
import type { CountedStack } from './cpu-profile.ts';
import type { SourceFrame, SourceNames } from './source-names.ts';

export interface CallNode {
  readonly frame: SourceFrame;
  /** Samples in the function itself. */
  self: number;
  /** With all that it called. */
  total: number;
  readonly children: Map<string, CallNode>;
}

export interface Share {
  readonly what: string;
  readonly self: number;
  readonly total: number;
}

export function emptyTree(): CallNode {
  return { frame: { name: 'all', file: '', line: 0, owner: 'V8' }, self: 0, total: 0, children: new Map() };
}

export function addStacks(tree: CallNode, stacks: readonly CountedStack[], names: Pick<SourceNames, 'of'>): void {
  for (const { frames, count } of stacks) {
    let node = tree;
    node.total += count;
    for (const callFrame of frames) {
      const frame = names.of(callFrame);
      const key = placeOf(frame);
      let child = node.children.get(key);
      if (child === undefined) {
        child = { frame, self: 0, total: 0, children: new Map() };
        node.children.set(key, child);
      }
      child.total += count;
      node = child;
    }
    node.self += count;
  }
}

/** `encode src/shared/framing/frame.ts:12` */
export function placeOf({ name, file, line }: SourceFrame): string {
  if (file === '') return name;
  return `${name} ${file}${line === 0 ? '' : `:${line}`}`;
}

/** Sums by what `keyOf` says of a function, greatest self first. A function that is on a stack twice counts once there. */
export function sumUp(tree: CallNode, keyOf: (frame: SourceFrame) => string): Share[] {
  const sums = new Map<string, { self: number; total: number }>();
  const visit = (node: CallNode, above: ReadonlySet<string>): void => {
    const key = keyOf(node.frame);
    const sum = sums.get(key) ?? { self: 0, total: 0 };
    sums.set(key, sum);
    sum.self += node.self;
    if (!above.has(key)) sum.total += node.total;
    const within = new Set(above).add(key);
    for (const child of node.children.values()) visit(child, within);
  };
  for (const child of tree.children.values()) visit(child, new Set());
  const shares = [...sums].map(([what, { self, total }]) => ({ what, self, total }));
  return shares.toSorted((a, b) => b.self - a.self || b.total - a.total || (a.what < b.what ? -1 : 1));
}
