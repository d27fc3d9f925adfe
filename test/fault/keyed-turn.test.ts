/** A keyed turn whose thread or log fails under it: what the same key is answered then, and that nothing runs twice. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { faultTest, logPath, readEvents } from '../support/invariants.ts';

t.setTimeout(60_000);

const prompt = (sessionId: string, key: string, text: string): object => ({
  sessionId,
  prompt: [{ type: 'text', text }],
  _meta: { 'dsh-acp': { key } },
});

void faultTest('a turn whose thread died is not run again under its key', async (t, rig) => {
  const server = await rig.serve({ args: ['--model', 'scripted', '--permission-mode', 'full-access'] });
  const sessionId = await server.newSession(rig.dir);
  const text = '[!exit 300]\nsay Working.\nrun echo x >> count\nrun sleep 20';
  const lost = await server.request('session/prompt', prompt(sessionId, 'k', text));
  t.match(lost.error, { data: { code: 'THREAD_LOST' } });
  for (let i = 0; i < 2; i += 1) {
    const again = await server.request('session/prompt', prompt(sessionId, 'k', text));
    t.match(again.error, { code: -31011, data: { code: 'TURN_INTERRUPTED', stored: true } });
  }
  // Where the thread died early it may still have run behind the answer, or not at all.
  const count = join(rig.dir, 'count');
  t.match(existsSync(count) ? readFileSync(count, 'utf8') : '', /^(?:x\n)?$/, 'the command was not run again');
  t.match(await server.request('session/prompt', prompt(sessionId, 'k2', 'say on')), { result: { stopReason: 'end_turn' } });
  const turns = (await readEvents(logPath(server, sessionId))).flatMap((event) => (event.type === 'turn/start' ? [event.data.key] : []));
  t.same(turns, ['k', 'k2']);
});
