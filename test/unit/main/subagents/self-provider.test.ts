import { EventEmitter, once } from 'node:events';
import t from 'tap';
import { SelfProvider, type SelfProviderParts } from '../../../../src/main/subagents/self-provider.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import { sessionsDir } from '../../../../src/shared/log/session-paths.ts';
import { mkdirSync } from 'node:fs';
import { provider } from '../../worker/subagents/fake-agents.ts';

t.test('a session that is not on its thread in time is refused; its slot is free once it is gone', async (t) => {
  const stateDir = t.testdir();
  mkdirSync(sessionsDir(stateDir), { recursive: true });
  const attached: ((error: Error) => void)[] = [];
  const attaching = new EventEmitter();
  const parts = {
    config: {
      stateDir,
      agentName: 'a',
      agentVersion: '1',
      session: { subagents: [provider('self', { startTimeoutMs: 400, maxRunning: 1 })] },
    },
    threads: {
      attach: () =>
        new Promise((_resolve, reject) => {
          attached.push(reject);
          attaching.emit('attach');
        }),
    },
    adopt: async () => undefined,
    findSession: () => ({ mode: 'ask', chosen: { choices: {} }, attached: {}, identity: { options: {} } }),
  };
  const self = new SelfProvider(parts as unknown as SelfProviderParts);
  const start = (runId: string) =>
    self.startSubagent({ owner: 'p', runId, provider: 'self', prompt: 'x', cwd: stateDir, depth: 1, spillDir: stateDir });

  t.match(await start('one'), { ok: false, code: 'SUBAGENT_FAILED', message: 'self had no session ready within 400 ms' });
  t.equal(await self.countSubagents('p'), 0);
  t.equal(self.sessionCount, 1, 'it is on its way still');
  t.match(await start('two'), { ok: false, code: 'OVERLOADED' });

  let released = false;
  const releasing = self.releaseOwner('p').then(() => (released = true));
  await new Promise((resolve) => setImmediate(resolve));
  t.notOk(released, "its owner's end waits for it");
  attached[0]?.(new ServerError('THREAD_LOST', 'The thread is gone.'));
  await releasing;
  t.equal(self.sessionCount, 0);

  const isAttaching = once(attaching, 'attach');
  const third = start('three');
  // Or its end, should it not come so far.
  await Promise.race([isAttaching, third]);
  attached[1]?.(new ServerError('THREAD_LOST', 'The thread is gone.'));
  t.match(await third, { ok: false, code: 'THREAD_LOST' }, 'the slot was given back');
});
