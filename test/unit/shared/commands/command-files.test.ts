/** Commands as Markdown files: which files count, and what they say. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { findCommandFiles } from '../../../../src/shared/commands/command-files.ts';
import { parseCommandText } from '../../../../src/shared/commands/command-text.ts';
import { builtInCommands, commandWords } from '../../../../src/shared/commands/command-words.ts';
import { sessionCommands } from '../../../../src/worker/commands/session-commands.ts';

interface Places {
  readonly cwd: string;
  readonly own: string;
}

type Files = NonNullable<Parameters<Test['testdir']>[0]>;

function placesOf(t: Test, files: Files = {}): Places {
  const root = t.testdir({ cwd: { '.dsh-acp': { commands: files } }, own: {}, outside: { 'secret.md': 'secret' } });
  return { cwd: join(root, 'cwd'), own: join(root, 'own') };
}
const find = async ({ cwd, own }: Places) => await findCommandFiles({ cwd, userDirectory: own });
const names = async (places: Places) => (await find(places)).map(({ name }) => name);

t.test('files below the directories of workspace and person are commands, directories a part of the name', async (t) => {
  const places = placesOf(t, {
    'review.md': '# Review the change\nCarefully.',
    front: { 'add-page.md': '---\ndescription: Adds a page\nargument-hint: "[name]"\n---\nAdd $1.' },
  });
  mkdirSync(join(places.cwd, '.claude', 'commands'), { recursive: true });
  writeFileSync(join(places.cwd, '.claude', 'commands', 'ship.md'), 'Ship it.');
  writeFileSync(join(places.own, 'mine.md'), 'Mine.');
  t.match(await find(places), [
    { name: 'front:add-page', description: 'Adds a page (workspace)', hint: '[name]', body: 'Add $1.', origin: 'workspace' },
    { name: 'mine', description: 'Mine. (user)', origin: 'user', hint: undefined },
    { name: 'review', description: 'Review the change (workspace)', body: '# Review the change\nCarefully.' },
    { name: 'ship', description: 'Ship it. (workspace)' },
  ]);
  t.same(await findCommandFiles({ cwd: places.own }), [], 'a workspace without any has none');
});

t.test('the person goes before the workspace, and nobody before the program', async (t) => {
  const places = placesOf(t, { 'same.md': 'theirs', 'help.md': 'not help', 'compact.md': 'not compact' });
  writeFileSync(join(places.own, 'same.md'), 'mine');
  writeFileSync(join(places.own, 'cost.md'), 'not cost');
  t.match(await find(places), [{ name: 'same', body: 'mine', origin: 'user' }]);
});

t.test('names, sizes, depth and number are bounded', async (t) => {
  const places = placesOf(t, {
    'README.md': 'x',
    'no spaces.md': 'x',
    'plain.txt': 'x',
    '-dash.md': 'x',
    'large.md': 'x'.repeat(64 * 1024 + 1),
    'bytes.md': 'a\0b',
    [`${'n'.repeat(65)}.md`]: 'x',
    a: { b: { c: { d: { 'deep.md': 'x' }, 'ok.md': 'x' } } },
  });
  t.same(await names(places), ['a:b:c:ok']);
  for (let i = 0; i < 120; i += 1) writeFileSync(join(places.cwd, '.dsh-acp', 'commands', `c${i}.md`), 'x');
  const many = await names(places);
  t.ok(many.length > 90 && many.length <= 100, `${many.length}`);
});

t.test('no link leads out of a workspace; a person may keep commands anywhere', async (t) => {
  const places = placesOf(t, { 'real.md': 'x' });
  const outside = join(places.cwd, '..', 'outside');
  const commands = join(places.cwd, '.dsh-acp', 'commands');
  symlinkSync(join(outside, 'secret.md'), join(commands, 'leak.md'));
  symlinkSync(outside, join(commands, 'more'));
  t.same(await names(places), ['real']);
  renameSync(commands, join(places.cwd, 'elsewhere'));
  symlinkSync(outside, commands);
  t.same(await names(places), [], 'a directory that is a link has none');
  symlinkSync(join(outside, 'secret.md'), join(places.own, 'kept.md'));
  t.same(await names(places), ['kept']);
});

t.test('a file that has not changed is not read again, and one that has is', async (t) => {
  const places = placesOf(t, { 'a.md': 'one', 'b.md': 'two' });
  const before = await find(places);
  writeFileSync(join(places.cwd, '.dsh-acp', 'commands', 'b.md'), 'three');
  const after = await findCommandFiles({ cwd: places.cwd, userDirectory: places.own }, before);
  t.equal(after[0], before[0]);
  t.match(after[1], { name: 'b', body: 'three', description: 'three (workspace)' });
});

t.test('front matter is read as far as it goes, and no text of it reaches a menu unclean', async (t) => {
  t.same(parseCommandText("\ufeff---\r\ndescription: 'Does it'\r\n---\r\nBody", 'x.md'), { description: 'Does it', body: 'Body' });
  t.same(parseCommandText('---\nno end', 'x.md'), { description: '---', body: '---\nno end' });
  t.match(parseCommandText('', 'x.md'), { description: 'x.md', body: '' });
  t.match(parseCommandText('Do $ARGUMENTS', 'x.md'), { hint: 'arguments' });
  const dirty = parseCommandText('---\ndescription: a\u202eb\u001b[2Jc\u200bd \u{e0041}\n---\n', 'x.md');
  t.equal(dirty.description, 'abcd');
  t.equal(Array.from(parseCommandText('w'.repeat(500), 'x.md').description).length, 200);
});

t.test('main advertises exactly the commands that a session runs', async (t) => {
  const parts = { choices: {}, undo: {} } as unknown as Parameters<typeof sessionCommands>[0];
  const words = sessionCommands(parts).map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint === undefined ? {} : { hint }),
  }));
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  t.same(words.toSorted(byName), builtInCommands.toSorted(byName));
  t.same(commandWords('help'), builtInCommands[0]);
  for (const { name } of builtInCommands) t.match(name, /^[a-z]+$/);
});
