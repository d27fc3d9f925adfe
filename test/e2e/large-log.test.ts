/**
 * A long history is shown whole and in order, and nobody else waits for it. The same over hundreds of megabytes, with memory and
 * time: `npm run campaign:large-log`.
 */
import { realpathSync } from 'node:fs';
import t from 'tap';
import { createSessionFile } from '../../src/shared/log/session-paths.ts';
import { sampleHeader, sampleId } from '../unit/shared/log/sample-events.ts';
import { cardsPerTurn, growLog } from '../support/large-log.ts';
import { LoadReader } from '../support/load-reader.ts';
import { endServer, startServer } from '../support/started-server.ts';

t.test('a load shows every turn of a long log, and a turn of another session ends before it does', async (t) => {
  const dir = realpathSync(t.testdir({ work: {}, state: {} }));
  const [cwd, stateDir] = [`${dir}/work`, `${dir}/state`];
  const log = growLog(createSessionFile(stateDir, sampleHeader(sampleId, cwd)), 4 * 1024 * 1024);
  const server = await startServer(t, { stateDir, args: ['--model', 'scripted', '--pace-ms', '0'] });
  const reader = new LoadReader(sampleId, () => undefined);
  reader.read(server.child.stdout!);
  const other = await server.newSession(cwd);
  await server.prompt(other, 'say warm');
  const load = server.start('session/load', { sessionId: sampleId, cwd, mcpServers: [] });
  await server.waitFor((frame) => frame.params?.sessionId === sampleId, 'the first of the history');
  t.match(await server.prompt(other, 'say hello'), { result: { stopReason: 'end_turn' } });
  const between = reader.turns;
  t.ok((await server.response(load)).result);
  t.ok(between < log.turns, `${between} of ${log.turns} turns had been shown`);
  t.same([reader.fault, reader.turns, reader.cards], [undefined, log.turns, log.turns * cardsPerTurn]);
  t.match(await server.prompt(sampleId, 'say more'), { result: { stopReason: 'end_turn' } }, 'and it goes on');
  await endServer(t, server);
});
