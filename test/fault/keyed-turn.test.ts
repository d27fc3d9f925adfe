/** A keyed turn whose thread or log fails under it: what the same key is answered then, and that nothing runs twice. */
import { readFileSync, rmSync } from 'node:fs';
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
  // It dies when the command has run: one that still ran would write behind the answer.
  const text = '[!exit on ran]\nsay Working.\nrun echo x >> count; touch ran\nrun sleep 20';
  const lost = await server.request('session/prompt', prompt(sessionId, 'k', text));
  t.match(lost.error, { data: { code: 'THREAD_LOST' } });
  // The same text asks for the same end again: it would come at once.
  rmSync(join(rig.dir, 'ran'));
  for (let i = 0; i < 2; i += 1) {
    const again = await server.request('session/prompt', prompt(sessionId, 'k', text));
    t.match(again.error, { code: -31011, data: { code: 'TURN_INTERRUPTED', stored: true } });
  }
  t.equal(readFileSync(join(rig.dir, 'count'), 'utf8'), 'x\n', 'the command was not run again');
  t.match(await server.request('session/prompt', prompt(sessionId, 'k2', 'say on')), { result: { stopReason: 'end_turn' } });
  const turns = (await readEvents(logPath(server, sessionId))).flatMap((event) => (event.type === 'turn/start' ? [event.data.key] : []));
  t.same(turns, ['k', 'k2']);
});
