/** Stored logs as lists of events, for tests and for programs beside them. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { LogEvent } from '../../src/shared/events.ts';
import { readLog } from '../../src/worker/log/log-reader.ts';

/** All events of a stored log; throws for one that is damaged. A torn tail is left out. */
export async function readEvents(path: string): Promise<LogEvent[]> {
  const events: LogEvent[] = [];
  const fd = openSync(path, 'r');
  try {
    await readLog({ fd, path, size: fstatSync(fd).size }, (event) => void events.push(event));
  } finally {
    closeSync(fd);
  }
  return events;
}
