/** A server with a subagent that is a process and obeys nothing, when the turn, the broker or the server ends. */
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { fileAppears } from '../support/file-appears.ts';
import { type FaultRig, type FaultServer, faultTest, processesIn } from '../support/invariants.ts';

t.setTimeout(100_000);

const badAgent = fileURLToPath(new URL('../support/bad-agent-main.js', import.meta.url));

/** Its child says one word, then nothing, and ignores cancel, the end of its input, and TERM. */
async function serve(rig: FaultRig, env: Record<string, string> = {}, behaviour = 'mute'): Promise<FaultServer> {
  const config = join(rig.dir, 'config.toml');
  const args = JSON.stringify([badAgent, behaviour, 'deaf']);
  writeFileSync(config, `[[subagents]]\nname = "deaf"\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${args}\n`, { mode: 0o600 });
  return await rig.serve({
    args: ['--config', config, '--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'],
    env,
  });
}

/** A turn whose subagent is at work. */
async function working(rig: FaultRig, server: FaultServer): Promise<{ readonly session: string; readonly prompt: number }> {
  const session = await server.newSession(realpathSync(rig.dir));
  const prompt = server.startPrompt(session, 'delegate deaf do something\nwait 60000');
  await server.next(({ params }) => JSON.stringify(params?.update?.content ?? '').includes('one word'), 'the word of the child');
  return { session, prompt };
}

void faultTest('the client goes: the child is killed, and the server is gone within its time', async (t, rig) => {
  const server = await serve(rig);
  const { prompt } = await working(rig, server);
  const start = performance.now();
  t.same(await server.close(), { code: 0, signal: null });
  t.ok(performance.now() - start < 5000, `gone after ${(performance.now() - start).toFixed(0)} ms`);
  t.match(server.responses(prompt), [{ result: { stopReason: 'cancelled' } }]);
});

void faultTest('a cancel is answered at once, whatever the child does, and the session goes on', async (t, rig) => {
  const server = await serve(rig);
  const { session, prompt } = await working(rig, server);
  const start = performance.now();
  server.notify('session/cancel', { sessionId: session });
  t.match(await server.response(prompt), { result: { stopReason: 'cancelled' } });
  t.ok(performance.now() - start < 8000, `answered after ${(performance.now() - start).toFixed(0)} ms`);
  t.match(await server.prompt(session, 'say on'), { result: { stopReason: 'end_turn' } });
});

void faultTest('a start that is cancelled is answered at once; once its session is closed nothing of the child is left', async (t, rig) => {
  const server = await serve(rig, {}, 'silent-initialize');
  const cwd = realpathSync(rig.dir);
  const session = await server.newSession(cwd);
  const prompt = server.startPrompt(session, 'delegate deaf do something\nwait 60000');
  // It writes its id there, and then never answers.
  await fileAppears(join(cwd, 'deaf'));
  server.notify('session/cancel', { sessionId: session });
  t.match(await server.response(prompt), { result: { stopReason: 'cancelled' } });
  t.match(await server.request('session/close', { sessionId: session }), { result: {} });
  t.same(
    processesIn(rig.dir).filter((pid) => pid !== server.child.pid),
    [],
  );
  t.throws(() => process.kill(Number(readFileSync(join(cwd, 'deaf'), 'utf8')), 0), { code: 'ESRCH' });
});

void faultTest('the broker dies: the child goes with it, and the session comes back', async (t, rig) => {
  const server = await serve(rig, { SABOTAGE: 'broker' });
  const { session, prompt } = await working(rig, server);
  server.child.kill('SIGUSR2');
  t.match((await server.response(prompt)).error, { data: { code: 'THREAD_LOST' } });
  t.match(await server.prompt(session, 'say back'), { result: { stopReason: 'end_turn' } });
});
