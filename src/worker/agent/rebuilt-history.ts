/** The model's history made anew from the log, for a rewind to a moment that is no longer in memory. */
import type { LogEvent } from '../../shared/events.ts';
import { aliveRanges, isAlive, type Rewind } from './alive-events.ts';
import { History } from './history.ts';

/**
 * The history of right before event `end`, made of the events that still count then.
 *
 * @param replay reads the whole log
 * @param bound called behind each event, to keep the history within what a session may hold
 * @throws what `replay` throws
 */
export async function rebuiltHistory(
  rewinds: readonly Rewind[],
  end: number,
  replay: (onEvent: (event: LogEvent) => void) => Promise<void>,
  bound: (history: History, seq: number) => void = () => undefined,
): Promise<History> {
  const ranges = aliveRanges(rewinds, end);
  const history = new History();
  await replay((event) => {
    // What a rewind left out is left out here by its range.
    if (event.type === 'history/rewound' || !isAlive(ranges, event.seq)) return;
    history.apply(event);
    bound(history, event.seq);
  });
  return history;
}
