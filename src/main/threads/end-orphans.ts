/**
 * Ends what a server that was killed left running for a session.
 *
 * A process that is killed outright cannot take its commands with it; they are found by the mark that every command and
 * its descendants carry. To be called only by whoever holds the session's lock: then they can be nobody else's.
 */
import { markedProcesses, signalProcess } from '../../shared/process-table.ts';

/**
 * Kills them without asking: who would have waited for their end is gone. What carries `ownMark` belongs to this server, and is
 * left alone. Looks at every process once, some milliseconds.
 */
export function endOrphans(sessionId: string, ownMark?: string): void {
  // Its MCP servers carry the id with a word before it.
  for (const { pid, environment } of markedProcesses(`${sessionId};`)) {
    if (ownMark === undefined || !environment.includes(`${ownMark}/`)) signalProcess(pid, 'SIGKILL');
  }
}
