/** Runs under a file size limit: a record that does not fit is refused wholly, one that fits goes on. Prints what it saw. */
import { statSync } from 'node:fs';
import { EventLog } from '../../../../../src/worker/log/event-log.ts';

const [path = '', lockPath = ''] = process.argv.slice(2);
const log = await EventLog.open({ path, lockPath, serverNonce: 'limit', threadId: 0, onEvent: () => {} });
function append(length: number): string {
  try {
    log.append({ type: 'history/compacted', data: { throughSeq: 0, summary: 'x'.repeat(length) } });
    return `ok ${statSync(path).size}`;
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    return `${(error as { code?: string }).code} ${(cause as { code?: string }).code} ${statSync(path).size}`;
  }
}
const steps = [append(100), append(200_000), append(100)];
await log.close();
process.stdout.write(JSON.stringify({ steps, events: log.eventCount }));
