import t from 'tap';
import { ChildText } from '../../../../../src/worker/broker/subagents/child-text.ts';

const both = async (text: ChildText): Promise<string[]> => [await text.lastMessage(), await text.all()];

t.test('the answer of a child that marks its messages is the last of them, in as many pieces as it came', async (t) => {
  const text = new ChildText();
  text.add('Let me look.', 'm1');
  text.interrupt();
  text.add('Two ', 'm2');
  text.interrupt();
  text.add('files.', 'm2');
  text.add('', 'm3');
  t.same(await both(text), ['Two files.', 'Let me look.\n\nTwo files.']);
  t.equal(text.add('Or three.', 'm4'), '\n\nOr three.', 'shown as a paragraph of its own');
  t.equal(await text.lastMessage(), 'Or three.');
});

t.test('that of a child that does not mark all of them is all it said', async (t) => {
  const text = new ChildText();
  text.add('Let me look.', undefined);
  text.interrupt();
  text.add('Two files.', undefined);
  t.same(await both(text), ['Let me look.\n\nTwo files.', 'Let me look.\n\nTwo files.']);
  text.add('End.', 'm1');
  t.match(await text.lastMessage(), /^Let me look.*End\.$/s);
  t.equal(await new ChildText().lastMessage(), '');
});

t.test('a long last message loses its middle', async (t) => {
  const text = new ChildText();
  text.add('before', 'm1');
  text.add(`begin ${'x'.repeat(2 * 1024 * 1024)} end`, 'm2');
  t.match(await text.lastMessage(), /^begin x.*bytes left out.*x end$/s);
});
