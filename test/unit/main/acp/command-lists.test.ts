/** When an editor hears of the commands of its sessions. */
import t from 'tap';
import { CommandLists } from '../../../../src/main/acp/command-lists.ts';
import type { Session } from '../../../../src/main/sessions/session.ts';
import type { CommandFile } from '../../../../src/shared/commands/command-files.ts';
import { builtInCommands } from '../../../../src/shared/commands/command-words.ts';

const file = (name: string): CommandFile => ({
  name,
  description: 'Does it (workspace)',
  origin: 'workspace',
  path: `/w/${name}.md`,
  signature: '1',
  body: '',
});

function rig() {
  const lines: string[] = [];
  const searches: ((found: CommandFile[]) => void)[] = [];
  let open = true;
  const lists = new CommandLists({
    write: (line) => lines.push(line),
    isOpen: () => open,
    findFiles: () => new Promise((resolve) => searches.push(resolve)),
  });
  return {
    lists,
    lines,
    searches,
    close: () => {
      open = false;
    },
    names: (at: number): string[] =>
      JSON.parse(lines.at(at) ?? '{}').params.update.availableCommands.map(({ name }: { name: string }) => name),
  };
}

const session = (profile: 'editor' | 'automation') => ({ identity: { id: 's1', cwd: '/w', profile }, settings: {} }) as unknown as Session;
const settled = () => new Promise((resolve) => setImmediate(resolve));
const builtIn = builtInCommands.map(({ name }) => name);

t.test('the list goes out right behind the answer, and again once files are found', async (t) => {
  const { lists, lines, searches, names } = rig();
  const answer = lists.behind({ sessionId: 's1' }, session('editor'));
  t.same(lines, [], 'not before the answer is written');
  lists.outgoing({ jsonrpc: '2.0', id: 1, result: { sessionId: 'other' } });
  lists.outgoing({ jsonrpc: '2.0', method: 'x' });
  t.same(lines, []);
  lists.outgoing({ jsonrpc: '2.0', id: 2, result: answer });
  t.match(JSON.parse(lines[0] ?? ''), {
    method: 'session/update',
    params: { sessionId: 's1', update: { sessionUpdate: 'available_commands_update' } },
  });
  t.same(names(0), builtIn);
  searches[0]?.([file('review')]);
  await settled();
  t.same(names(1), [...builtIn, 'review']);
});

t.test('the first prompt brings it once more, later ones only what has changed', async (t) => {
  const { lists, lines, searches, names } = rig();
  const one = session('editor');
  lists.promptBegins(one);
  t.equal(lines.length, 1);
  lists.promptBegins(one);
  await settled();
  t.equal(searches.length, 1, 'one search at a time');
  searches[0]?.([]);
  await settled();
  t.equal(lines.length, 1);
  lists.promptBegins(one);
  await settled();
  searches[1]?.([file('new')]);
  await settled();
  t.same(names(-1), [...builtIn, 'new']);
  t.equal(lines.length, 2);
});

t.test('a program hears nothing, and nobody of a session that is closed', async (t) => {
  const { lists, lines, searches, close } = rig();
  const program = session('automation');
  lists.outgoing({ jsonrpc: '2.0', id: 1, result: lists.behind({}, program) });
  lists.promptBegins(program);
  t.same([lines, searches], [[], []]);
  lists.promptBegins(session('editor'));
  await settled();
  close();
  searches[0]?.([file('late')]);
  await settled();
  t.equal(lines.length, 1);
});

t.test('sessions of one workspace share a search, but each prompt finds what was there before it', async (t) => {
  const { lists, searches, names } = rig();
  const [one, two] = [session('editor'), session('editor')];
  lists.promptBegins(one);
  lists.promptBegins(two);
  await settled();
  t.equal(searches.length, 1);
  searches[0]?.([file('shared')]);
  await settled();
  t.same(
    [names(-1), names(-2)],
    [
      [...builtIn, 'shared'],
      [...builtIn, 'shared'],
    ],
  );
  lists.promptBegins(two);
  lists.promptBegins(one);
  await settled();
  t.equal(searches.length, 2, 'a session never has the same search twice');
  searches[1]?.([file('shared'), file('later')]);
  await settled();
  t.same(names(-1), [...builtIn, 'shared', 'later']);
});
