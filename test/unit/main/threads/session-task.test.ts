/** What the thread of a session is told of the person's lasting answers. */
import { MessageChannel } from 'node:worker_threads';
import t from 'tap';
import { type SessionPlace, sessionTask, type ServerPlace } from '../../../../src/main/threads/session-task.ts';
import { grantsPath } from '../../../../src/shared/permission/grants-file.ts';

const server = {
  config: { stateDir: '/state', isolation: 'shared', session: {}, sandbox: { use: 'off' } },
  serverNonce: 'n',
  ownDirectories: ['/state'],
} as unknown as ServerPlace;

t.test('an editor’s session has the answers of its workspace, a program’s none; below an editor the refusals hold', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.teardown(() => [port1, port2].map((port) => port.close()));
  const place = {
    sessionId: 's',
    cwd: '/ws',
    paths: { log: '/l', lock: '/k', spillDir: '/d' },
    client: { terminalOutput: false },
    options: {},
  };
  const grants = (more: Partial<SessionPlace>) => sessionTask({ ...place, profile: 'editor', ...more }, server, port1).grants;
  const path = grantsPath('/state', '/ws');
  t.match(path, /^\/state\/grants\/[0-9a-f]{32}\.jsonl$/);
  t.not(path, grantsPath('/state', '/ws2'));
  t.same(grants({}), { path, use: 'answers' });
  t.same(grants({ profile: 'automation' }), undefined);
  t.same(grants({ profile: 'automation', heedsRefusals: true }), { path, use: 'refusals' });
  t.same(grants({ readOnly: true }), undefined);
});
