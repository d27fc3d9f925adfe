import t from 'tap';
import type { PermissionMode } from '../../../../src/shared/events.ts';
import { tellOfBackground } from '../../../../src/worker/session/background-notice.ts';
import { validateAgentFrame } from '../../../support/acp-schema.ts';

async function told(mode: PermissionMode, count: number | Error, notices = false): Promise<any[]> {
  const shown: any[] = [];
  const countBackground = async (): Promise<number> => {
    if (count instanceof Error) throw count;
    return count;
  };
  await tellOfBackground(mode, { sessionId: 's', broker: { countBackground }, notices, show: (update) => shown.push(update) });
  return shown;
}

t.test('who chooses a mode without commands is told how many go on, and how they end', async (t) => {
  for (const mode of ['plan', 'read-only'] as const) {
    const [update, ...more] = await told(mode, 2);
    t.match(update, {
      sessionUpdate: 'agent_message_chunk',
      content: { text: /^2 background commands go on in the mode .*bash_kill.*closing/ },
    });
    t.same(more, []);
    const frame = { jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update } };
    t.same(validateAgentFrame(frame), []);
    t.match((await told(mode, 1))[0]?.content.text, /^One background command goes on/);
    t.match(await told(mode, 1, true), [{ sessionUpdate: 'notice', severity: 'warning', title: /^One background command/ }]);
  }
});

t.test('nothing is said where nothing runs, commands stay allowed, or the broker does not know', async (t) => {
  t.same(await told('plan', 0), []);
  t.same(await told('ask', 2), []);
  t.same(await told('full-access', 2), []);
  t.same(await told('plan', new Error('gone')), []);
});
