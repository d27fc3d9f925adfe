/** What becomes of a delegating session and its subagents when their thread, or the whole server, dies under them. */
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { fileAppears } from '../support/file-appears.ts';
import { type FaultServer, faultTest, logPath, readEvents } from '../support/invariants.ts';

t.setTimeout(100_000);

const delegate = (lines: readonly string[], background = false): string =>
  [`delegate ${background ? '& ' : ''}self <<END`, ...lines, 'END'].join('\n');

function childLogs(server: FaultServer, parent: string): string[] {
  const dir = sessionsDir(server.stateDir);
  return readdirSync(dir)
    .filter((name) => name.endsWith('.jsonl') && !name.startsWith(parent))
    .map((name) => join(dir, name));
}

void faultTest('a thread that dies takes the family along, and the revived session knows how its runs ended', async (t, rig) => {
  const args = ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access', '--max-threads', '1'];
  const server = await rig.serve({ args });
  // The children's logs stay as they were: nobody goes on with them.
  server.leavesOpenTurn = true;
  const cwd = realpathSync(rig.dir);
  const session = await server.newSession(cwd);
  const culprit = await server.newSession(cwd);
  const script = [delegate(['run touch behind; exec sleep 100'], true), delegate(['say Begun.', 'run touch begun; exec sleep 100'])].join(
    '\n',
  );
  const prompt = server.startPrompt(session, script);
  await Promise.all([fileAppears(join(cwd, 'begun')), fileAppears(join(cwd, 'behind'))]);
  // On the one thread that all of them share.
  t.match((await server.prompt(culprit, '[!throw 20]\nwait 60000')).error, { data: { code: 'THREAD_LOST' } });
  t.match((await server.response(prompt)).error, { data: { code: 'THREAD_LOST' } });
  t.match(await server.prompt(session, 'say again'), { result: { stopReason: 'end_turn' } });
  t.match(await server.prompt(session, 'collect agent-1'), { result: { stopReason: 'end_turn' } });
  await server.close();
  const events = await readEvents(logPath(server, session));
  const ends = events.flatMap((event) => (event.type === 'subagent/end' ? [event.data] : []));
  t.match(ends, [
    { runId: /^agent-1:/, stopReason: 'error', diagnostic: /not recorded/ },
    { runId: /^agent-2:/, stopReason: 'error' },
  ]);
  const notices = events.flatMap((event) => (event.type === 'user/message' && event.data.source === 'notice' ? event.data.content : []));
  t.match(notices, [{ text: /job agent-1 .* failed/ }]);
  const collected = events.flatMap((event) => (event.type === 'tool/result' ? [event.data] : [])).at(-1);
  t.match(collected, { isError: true, text: /^subagent run failed\nDiagnostic: / });
  t.equal(childLogs(server, session).length, 3);
});

void faultTest('a killed server leaves runs open in the log; who loads the session closes them', async (t, rig) => {
  const args = ['--model', 'scripted', '--pace-ms', '0', '--permission-mode', 'full-access'];
  const first = await rig.serve({ args });
  const cwd = realpathSync(rig.dir);
  const session = await first.newSession(cwd);
  first.startPrompt(session, delegate(['run touch begun; exec sleep 100']));
  await fileAppears(join(cwd, 'begun'));
  await first.crash();
  const second = await rig.serve({ args });
  const from = second.frames.length;
  t.match(await second.request('session/load', { sessionId: session, cwd, mcpServers: [] }), { result: {} });
  const shown = second.frames.slice(from).flatMap((frame) => (frame.params?.update?.toolCallId === undefined ? [] : [frame.params.update]));
  t.equal(shown.at(-1)?.status, 'failed', 'its card is closed');
  const events = await readEvents(logPath(second, session));
  t.match(events.find(({ type }) => type === 'subagent/end')?.data, { stopReason: 'error', diagnostic: /not recorded/ });
});
