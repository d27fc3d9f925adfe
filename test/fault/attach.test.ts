/** A session is being attached to a thread, and the thread dies, hangs or cannot write the session's log. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { faultTest } from '../support/invariants.ts';

t.setTimeout(100_000);

void faultTest('fault 14: a thread that dies while a session is attached answers with a typed error and leaves nothing', async (t, rig) => {
  const cwd = join(rig.dir, 'work');
  mkdirSync(cwd);
  const server = await rig.serve({ args: ['--model', 'scripted'] });
  for (const act of ['exit', 'throw', 'refuse']) {
    const session = await server.newSession(cwd);
    writeFileSync(join(cwd, '.sabotage-attach'), act);
    const start = performance.now();
    t.match((await server.prompt(session, 'say one')).error, { code: -31004 }, act);
    t.ok(performance.now() - start < 5000, `${act}: told after ${(performance.now() - start).toFixed(0)} ms`);
    t.match(await server.prompt(session, 'say two'), { result: { stopReason: 'end_turn' } });
    t.same((await server.request('session/close', { sessionId: session })).result, {});
    writeFileSync(join(cwd, '.sabotage-attach'), act);
    const load = { sessionId: session, cwd, mcpServers: [] };
    t.match((await server.request('session/load', load)).error, { code: -31004 }, `${act} at load`);
    t.match((await server.prompt(session, 'say three')).error, { code: -32002 }, 'a failed load leaves no session');
    t.ok((await server.request('session/load', load)).result, 'the next load works');
  }
});

void faultTest('fault 13: a session that kills its thread whenever it is attached fails, too', async (t, rig) => {
  const cwd = join(rig.dir, 'work');
  mkdirSync(cwd);
  writeFileSync(join(cwd, '.sabotage-attach'), 'always exit');
  const server = await rig.serve({ args: ['--model', 'scripted'] });
  const session = await server.newSession(cwd);
  for (let death = 0; death < 3; death += 1) t.match((await server.prompt(session, 'say no')).error, { code: -31004 });
  t.match((await server.prompt(session, 'say no')).error, { code: -31005 });
});

void faultTest('an attach that hangs is given up, and its thread may be used again', async (t, rig) => {
  const cwd = join(rig.dir, 'work');
  mkdirSync(cwd);
  const server = await rig.serve({ args: ['--model', 'scripted', '--attach-timeout-ms', '2500'] });
  const session = await server.newSession(cwd);
  writeFileSync(join(cwd, '.sabotage-attach'), 'hang');
  t.match((await server.prompt(session, 'say one')).error, { code: -31004 });
  t.match(await server.prompt(session, 'say two'), { result: { stopReason: 'end_turn' } });
  writeFileSync(join(cwd, '.sabotage-attach'), 'spin');
  const stuck = await server.newSession(cwd);
  t.match((await server.prompt(stuck, 'say one')).error, { code: -31004 });
  t.match(await server.prompt(stuck, 'say two'), { result: { stopReason: 'end_turn' } });
});
