/** What it costs a thread to take a session and to let it go: lock, log, agent and view, without the thread itself. By the turns in its log. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessionPaths } from '../../src/shared/log/session-paths.ts';
import { HostRig } from '../../test/unit/worker/session/host-rig.ts';
import { storeSession } from '../load/stored-sessions.ts';
import { measureAll, type MicroWork } from './measured.ts';

const folder = mkdtempSync(join(tmpdir(), 'dsh-acp-micro-'));

function work(turns: number): MicroWork {
  mkdirSync(join(folder, 'work'), { recursive: true });
  const rig = new HostRig({ testdir: () => folder, teardown: () => undefined } as unknown as ConstructorParameters<typeof HostRig>[0]);
  const id = storeSession(folder, join(folder, 'work'), turns);
  const paths = sessionPaths(folder, id);
  const run = async (): Promise<void> => {
    const { started, api, hosted, port } = await rig.attach({ id, paths });
    if (started.kind !== 'started') throw new Error(`The session was not taken: ${JSON.stringify(started)}`);
    await api.dispose().catch(() => undefined);
    await hosted;
    port.close();
  };
  return { what: `attach and leave, ${turns} turns in the log`, unit: 'session', count: 1, run };
}

try {
  await measureAll('attach', [0, 10, 100, 1000].map(work));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
