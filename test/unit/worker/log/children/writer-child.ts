/** Appends events without end and prints the count of events after each barrier, until it is killed. */
import { writeSync } from 'node:fs';
import { EventLog } from '../../../../../src/worker/log/event-log.ts';

const [path = '', lockPath = '', serverNonce = ''] = process.argv.slice(2);
const log = await EventLog.open({ path, lockPath, serverNonce, threadId: 0, onEvent: () => {} });
for (;;) {
  for (let index = 0; index < 20; index += 1) {
    const seq = log.eventCount;
    log.append({ type: 'history/pruned', data: { callIds: ['x'.repeat((seq * 7919) % 3000)], keepChars: seq } });
  }
  await log.barrier();
  writeSync(1, `${log.eventCount}\n`);
}
