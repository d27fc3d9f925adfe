/** Secrets in streamed text, drafts and running output: none is passed on, whole or in pieces, and what is held back is not lost. */
import t from 'tap';
import type { EventData } from '../../../../src/shared/events.ts';
import { SecretValues } from '../../../../src/shared/secret-values.ts';
import { CleanChunks } from '../../../../src/worker/session/clean-chunks.ts';
import { CleanTexts } from '../../../../src/worker/session/clean-texts.ts';
import { DraftedCalls } from '../../../../src/worker/session/drafted-calls.ts';

type Chunk = EventData['assistant/chunk'];

const secrets = new SecretValues(['tok-1234-5678', 'sk-abc-12345678']);

const delta = (text: string, kind: Chunk['kind'] = 'text', messageId = 'm1'): Chunk => ({ turn: 1, step: 1, messageId, kind, text });

function chunks() {
  const passed: Chunk[] = [];
  const clean = new CleanChunks(secrets, (chunk) => void passed.push(chunk));
  const said = (): string[] => passed.splice(0).map(({ kind, messageId, text }) => `${kind} ${messageId}: ${text}`);
  return { clean, said };
}

t.test('a secret in three deltas is taken out, and text around it comes as it came', async (t) => {
  const { clean, said } = chunks();
  const first = delta('it is ');
  clean.take(first);
  for (const text of ['tok', '-1234', '-5678.', ' Bye']) clean.take(delta(text));
  t.same(said(), ['text m1: it is ', 'text m1: to', 'text m1: [redacted].', 'text m1:  Bye']);
  clean.before({ type: 'assistant/message' });
  t.same(said(), [], 'nothing waits');
});

t.test('thoughts between the deltas of a text do not cut a secret in it', async (t) => {
  const { clean, said } = chunks();
  clean.take(delta('a tok-12'));
  clean.take(delta('hm sk-a', 'reasoning', 'm1-thought'));
  clean.take(delta('34-5678 b'));
  clean.take(delta('bc', 'reasoning', 'm1-thought'));
  clean.before({ type: 'assistant/message' });
  t.same(said(), ['text m1: a to', 'reasoning m1-thought: hm sk', 'text m1: [redacted] b', 'reasoning m1-thought: -abc']);
});

t.test('what waits is passed on with the end of its message, and not with events beside it', async (t) => {
  const { clean, said } = chunks();
  clean.take(delta('ask tok-12'));
  clean.before({ type: 'subagent/activity' });
  t.same(said(), ['text m1: ask to']);
  clean.take(delta('next', 'text', 'm2'));
  t.same(said(), ['text m1: k-12', 'text m2: next']);
  clean.take(delta(' tok-9', 'text', 'm2'));
  clean.before({ type: 'turn/end' });
  clean.before({ type: 'turn/end' });
  t.same(said(), ['text m2:  tok-9'], 'no secret begins so');
});

t.test('without secrets deltas are passed on themselves', async (t) => {
  const passed: Chunk[] = [];
  const clean = new CleanChunks(new SecretValues([]), (chunk) => void passed.push(chunk));
  const one = delta('tok-1234-5678');
  clean.take(one);
  clean.before({ type: 'assistant/message' });
  t.equal(passed[0], one);
  t.equal(passed.length, 1);
});

t.test('texts of several ids do not mix', async (t) => {
  const texts = new CleanTexts(secrets);
  t.equal(texts.take('a', 'x tok-1234'), 'x to');
  t.equal(texts.take('b', '-5678'), '-5678');
  t.equal(texts.take('a', '-5678 y'), '[redacted] y');
  t.equal(texts.take('a', 'tok-'), 'to');
  t.equal(texts.end('a'), 'k-');
  t.equal(texts.end('a'), '');
  texts.take('b', 'tok-1');
  texts.clear();
  t.equal(texts.end('b'), '', 'given up');
});

t.test('a draft shows neither a secret nor the beginning of one that may still come', async (t) => {
  const shown: unknown[] = [];
  let look: () => void = () => undefined;
  const drafts = new DraftedCalls({
    show: (_callId, _name, args) => void shown.push(args),
    hasRoom: () => true,
    schedule: (task) => {
      look = task;
      return () => undefined;
    },
    secrets,
  });
  drafts.take({ kind: 'named', callId: 'c', name: 'bash' });
  drafts.take({ kind: 'arguments', callId: 'c', text: '{"description":"use tok-1234-5678","command":"curl -u sk-abc-1234' });
  look();
  t.same(shown, [{ members: { description: 'use [redacted]' }, growing: { name: 'command', value: 'curl -u sk' } }]);
});
