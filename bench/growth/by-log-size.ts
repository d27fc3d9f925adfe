/** Opening a stored session by the size of its log: a server that has done nothing yet resumes it, another one loads and shows it. */
import { statSync } from 'node:fs';
import { logVersion } from '../../src/shared/events.ts';
import { createSessionFile } from '../../src/shared/log/session-paths.ts';
import { growLog } from '../../test/support/large-log.ts';
import { settledMb } from '../load/settled-memory.ts';
import { startTarget } from '../load/targets.ts';
import type { BenchRun } from '../run.ts';
import { flat, linear, Samples } from './curve.ts';

const id = '00000000-0000-7000-8000-000000000001';
const over = 'MB of log';
const megabyte = 1024 * 1024;

export async function growthByLogSize(bench: BenchRun): Promise<void> {
  const sizes = bench.full ? [0.1, 1, 10, 100, 300] : [0.1, 1, 10];
  for (const method of ['session/resume', 'session/load']) {
    const [time, peak, after] = [new Samples(), new Samples(), new Samples()];
    for (const size of sizes) {
      // A large one takes as long as all others, and its spread is small.
      for (let repeat = 0; repeat < (bench.full && size < 100 ? 3 : 1); repeat += 1) {
        const opened = await open(bench, method, size);
        time.add(opened.mb, opened.ms);
        peak.add(opened.mb, opened.peakMb);
        after.add(opened.mb, opened.afterMb);
      }
    }
    bench.curve(time.curve({ what: method, unit: 'ms', over, most: linear, from: 5 }));
    bench.curve(peak.curve({ what: `greatest memory during ${method}`, unit: 'MB', over, most: flat, from: 5 }));
    // The ids of all calls stay, and garbage does until there is more of it.
    bench.curve(after.curve({ what: `memory after ${method}`, unit: 'MB', over, most: linear, from: 5 }));
  }
}

async function open(bench: BenchRun, method: string, megabytes: number) {
  let bytes = 0;
  const { agent, close } = await startTarget('dedicated', bench.model, {
    // However slow the machine is: what is asked is how long it takes.
    flags: ['--attach-timeout-ms', '600000'],
    prepare: (stateDir) => {
      const agentInfo = { name: 'bench', version: '0' };
      const header = {
        type: 'session',
        version: logVersion,
        id,
        createdAt: new Date().toISOString(),
        cwd: process.cwd(),
        agent: agentInfo,
      } as const;
      const paths = createSessionFile(stateDir, header);
      growLog(paths, megabytes * megabyte);
      bytes = statSync(paths.log).size;
    },
  });
  // A thread is ready, and its memory is not the log's.
  await agent.newSession();
  const idleMb = await settledMb(agent);
  const start = performance.now();
  await agent.request(method, { sessionId: id, cwd: process.cwd(), mcpServers: [] });
  const ms = performance.now() - start;
  const peakMb = agent.rssMb('VmHWM');
  const afterMb = (await settledMb(agent)) - idleMb;
  await close();
  return { mb: Number((bytes / megabyte).toPrecision(2)), ms, peakMb, afterMb };
}
