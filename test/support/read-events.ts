/** Stored logs as lists of events, for tests and for programs beside them. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { LogEvent, SessionHeader } from '../../src/shared/events.ts';
import { readLog } from '../../src/worker/log/log-reader.ts';

export interface StoredSession {
  readonly header: SessionHeader;
  readonly events: readonly LogEvent[];
}

/** A whole stored log; throws for one that is damaged. A torn tail is left out. */
export async function readSession(path: string): Promise<StoredSession> {
  const events: LogEvent[] = [];
  const fd = openSync(path, 'r');
  try {
    const { header } = await readLog({ fd, path, size: fstatSync(fd).size }, (event) => void events.push(event));
    return { header, events };
  } finally {
    closeSync(fd);
  }
}

/** Its events alone. */
export async function readEvents(path: string): Promise<LogEvent[]> {
  return [...(await readSession(path)).events];
}
