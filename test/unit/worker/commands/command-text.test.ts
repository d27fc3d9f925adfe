/** What counts as a command, what a file makes of it, and how links of a prompt are named. */
import { join } from 'node:path';
import t from 'tap';
import type { PromptBlock } from '../../../../src/shared/events.ts';
import { expandCommand } from '../../../../src/worker/commands/expand-command.ts';
import { withPaths } from '../../../../src/worker/commands/prompt-links.ts';
import { typedCommand } from '../../../../src/worker/commands/typed-command.ts';

const text = (words: string): PromptBlock => ({ type: 'text', text: words });
const image: PromptBlock = { type: 'image', mimeType: 'image/png', data: 'AAAA' };
const link: PromptBlock = { type: 'resource_link', uri: 'file:///w/a.ts', name: 'a.ts', path: 'a.ts' };

t.test('a command is the first text, from its first character', async (t) => {
  t.match(typedCommand([text('/help')]), { name: 'help', args: '' });
  t.match(typedCommand([text('/front:add-page  one\ntwo ')]), { name: 'front:add-page', args: 'one\ntwo' });
  t.match(typedCommand([image, text('/x y')]), { name: 'x', args: 'y', before: [image] });
  for (const other of ['help', ' /help', '/', '/ help', '//', '/Help', '/usr/bin is full', '/help!', `/${'n'.repeat(65)}`]) {
    t.equal(typedCommand([text(other)]), undefined, other);
  }
  t.equal(typedCommand([link]), undefined);
  t.equal(typedCommand([text('see'), text('/help')]), undefined);
});

t.test('links and later texts are words of the command, images go beside it', async (t) => {
  const typed = typedCommand([text('/fix '), link, image, text(' and test it')]);
  t.match(typed, { name: 'fix', args: '[resource "a.ts" path "a.ts"] and test it', attached: [image], before: [] });
  t.equal(typed?.content.length, 4);
});

t.test('words are put where the file wants them, once', async (t) => {
  t.equal(expandCommand('Do $ARGUMENTS now', 'a "b c"'), 'Do a "b c" now');
  t.equal(
    expandCommand('$1, $2 and $3|$10|$ARGUMENTSX', `one "two words" 'three more' four`),
    'one, two words and three more|$10|$ARGUMENTSX',
  );
  t.equal(expandCommand('[$2]', 'one'), '[]');
  t.equal(expandCommand('Review.', ''), 'Review.');
  t.equal(expandCommand('Review.', 'src'), 'Review.\n\nsrc');
  t.equal(expandCommand('$ARGUMENTS', '$1 $ARGUMENTS'), '$1 $ARGUMENTS', 'what was typed is not looked at again');
  t.equal(expandCommand('say \u202ehidden', ''), 'say ‹U+202E›hidden');
  const huge = expandCommand('$ARGUMENTS '.repeat(5000), 'x'.repeat(100_000));
  t.ok(huge.length < 300 * 1024, `${huge.length}`);
  t.match(huge, /\(cut here\)$/);
});

t.test('a link to a file of the workspace says the path that the tools take', async (t) => {
  const root = '/srv/projects';
  const cwd = join(root, 'work');
  const workspace = { cwd, additionalDirectories: [join(root, 'more')] };
  const named = (uri: string) => {
    const [block] = withPaths([{ type: 'resource_link', uri, name: 'n' }], workspace);
    return block?.type === 'resource_link' ? [block.path, block.lines] : [];
  };
  t.same(named(`file://${cwd}/a%20b.ts`), ['a b.ts', undefined]);
  t.same(named(`file://${cwd}/src/c.ts#L5:15`), ['src/c.ts', '5-15']);
  t.same(named(`file://${cwd}/src/c.ts?symbol=main#L7`), ['src/c.ts', '7']);
  t.same(named(`file://${cwd}`), ['.', undefined]);
  t.same(named(`file://${cwd}/not-yet.ts`), ['not-yet.ts', undefined]);
  t.same(named(`file://${root}/more/d.ts`), [join(root, 'more', 'd.ts'), undefined]);
  for (const out of [
    `file://${root}/other/e.ts`,
    `file://${cwd}/../other/e.ts`,
    'https://example.org/a.ts',
    'file://host/a.ts',
    'file:///%zz',
    'zed:///agent',
  ]) {
    t.same(named(out), [undefined, undefined], out);
  }
  const [block] = withPaths([{ type: 'resource_link', uri: 'file:///alias/src/c.ts', name: 'n' }], { ...workspace, givenCwd: '/alias' });
  t.match(block, { path: 'src/c.ts' }, 'also when the client comes by another way');
  t.same(withPaths([text('hi'), image], workspace), [text('hi'), image]);
});
