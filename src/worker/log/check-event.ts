/**
 * The light check of a parsed line: is it an event of this vocabulary, in its place? What `data` holds is the schema's
 * business; here a wrong place or an unknown kind must not pass in silence.
 */
import type { LogEvent } from '../../shared/events.ts';
import { isEventType } from '../../shared/log/event-types.ts';
import { logCorrupt } from '../../shared/log/log-faults.ts';

export interface EventPlace {
  readonly path: string;
  /** Counts from 1, the header's line. */
  readonly line: number;
  readonly seq: number;
}

/**
 * Whether the event is to be handed on; false for an unknown type that is marked ignorable.
 *
 * @throws ServerError LOG_CORRUPT naming the line
 */
export function checkEvent(event: LogEvent & { ignorable?: unknown }, place: EventPlace): boolean {
  if (typeof event !== 'object' || event === null || typeof event.type !== 'string') {
    throw logCorrupt(place.path, place.line, 'expected an event with a type');
  }
  if (event.seq !== place.seq) {
    throw logCorrupt(place.path, place.line, `expected seq ${place.seq}`);
  }
  if (typeof event.time !== 'number' || typeof event.data !== 'object' || event.data === null || Array.isArray(event.data)) {
    throw logCorrupt(place.path, place.line, 'expected a time and a data object');
  }
  // A damaged name of a member, the seal's too, shows as a member that does not belong.
  for (const name in event) {
    if (name !== 'type' && name !== 'seq' && name !== 'time' && name !== 'data' && name !== 'ignorable') {
      throw logCorrupt(place.path, place.line, 'found a member that no event has');
    }
  }
  if (isEventType(event.type)) {
    return true;
  }
  if (event.ignorable === true) {
    return false;
  }
  throw logCorrupt(place.path, place.line, 'found an event of a type that this release does not know');
}
