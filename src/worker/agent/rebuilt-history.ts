/** The model's history made anew from the log, for a rewind to a moment that is no longer in memory. */
import type { LogEvent } from '../../shared/events.ts';
import { aliveRanges, isAlive, type Rewind } from './alive-events.ts';
import { History } from './history.ts';

/**
 * The history of right before event `end`, made of the events that still count then.
 *
 * @param replay reads the whole log
 * @throws what `replay` throws
 */
export async function rebuiltHistory(
  rewinds: readonly Rewind[],
  end: number,
  replay: (onEvent: (event: LogEvent) => void) => Promise<void>,
): Promise<History> {
  const ranges = aliveRanges(rewinds, end);
  const history = new History();
  await replay((event) => {
    // What a rewind left out is left out here by its range.
    if (event.type !== 'history/rewound' && isAlive(ranges, event.seq)) history.apply(event);
  });
  return history;
}
