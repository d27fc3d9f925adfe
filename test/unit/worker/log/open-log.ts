/** Opens and makes logs as the tests of this directory need them. */
import type { EventInput, LogEvent } from '../../../../src/shared/events.ts';
import { createSessionFile, type SessionPaths } from '../../../../src/shared/log/session-paths.ts';
import { EventLog, type EventLogOptions } from '../../../../src/worker/log/event-log.ts';
import { sampleHeader } from '../../shared/log/sample-events.ts';

/** An open log and the events that opening it read. */
export async function openLog(paths: SessionPaths, options: Partial<EventLogOptions> = {}) {
  const events: LogEvent[] = [];
  const log = await EventLog.open({
    path: paths.log,
    lockPath: paths.lock,
    serverNonce: 'me',
    threadId: 1,
    onEvent: (event) => {
      events.push(event);
    },
    ...options,
  });
  return { log, events };
}

/** A closed log of these events. */
export async function makeLog(stateDir: string, inputs: readonly EventInput[]): Promise<{ paths: SessionPaths; written: LogEvent[] }> {
  const paths = createSessionFile(stateDir, sampleHeader());
  const { log } = await openLog(paths);
  const written = inputs.map((input) => log.append(input));
  await log.close();
  return { paths, written };
}
