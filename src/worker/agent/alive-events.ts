/**
 * Which events of a log still make up the conversation, after rewinds.
 *
 * A log only grows. A rewind says: the conversation is again what it was right before event `base`. What lay between is left
 * out from then on, until another rewind goes back to a moment at which it still counted.
 */

export interface Rewind {
  /** Of the `history/rewound` event. */
  readonly seq: number;
  readonly base: number;
}

/** Events from `from` up to, and without, `to`. */
export interface EventRange {
  readonly from: number;
  readonly to: number;
}

/** What the conversation was made of right before event `end`: ascending, without overlaps. `rewinds` in log order. */
export function aliveRanges(rewinds: readonly Rewind[], end: number): EventRange[] {
  const ranges: EventRange[] = [];
  let to = end;
  for (let index = rewinds.length - 1; index >= 0; index -= 1) {
    const rewind = rewinds[index];
    if (rewind === undefined || rewind.seq >= to) continue;
    ranges.unshift({ from: rewind.seq, to });
    // A log made by hand could point forward.
    to = Math.min(rewind.base, rewind.seq);
  }
  return [{ from: 0, to }, ...ranges];
}

export function isAlive(ranges: readonly EventRange[], seq: number): boolean {
  return ranges.some(({ from, to }) => seq >= from && seq < to);
}
