/**
 * The translator's shortcut for chunks that repeat must give exactly what a full parse gives, whatever a stream looks like.
 */
import * as fc from 'fast-check';
import t from 'tap';
import { ChatTranslator } from '../../../../src/worker/model/chat-translator.ts';
import { DeltaTemplate } from '../../../../src/worker/model/delta-template.ts';
import { type ModelEvent, ModelFailure } from '../../../../src/worker/model/model-adapter.ts';

interface Taken {
  readonly events: readonly ModelEvent[];
  readonly results: readonly string[];
}

/** `fresh` uses a translator of its own for every chunk, which cannot have learnt anything. */
function takeAll(lines: readonly string[], fresh: boolean): Taken {
  const events: ModelEvent[] = [];
  const make = (): ChatTranslator =>
    new ChatTranslator({ usedCallIds: () => new Set(), sink: (event) => events.push(event), apiKey: undefined });
  const kept = make();
  const results = lines.map((line) => {
    try {
      return (fresh ? make() : kept).take(line);
    } catch (error) {
      return error instanceof ModelFailure ? error.code : String(error);
    }
  });
  return { events, results };
}

const words = fc.oneof(
  fc.constantFrom(
    'content',
    'local',
    '0',
    'null',
    'a"b',
    'a\\b',
    '\n',
    '"',
    '\\',
    '","x":"',
    '\u0394probe',
    'é',
    '🙂',
    '\ud800',
    'text',
    'x'.repeat(40),
  ),
  fc.string({ maxLength: 14 }),
);

/** The same text also stands in places where it means nothing. */
const chunks = fc
  .record({
    text: words,
    id: fc.constantFrom('local', '0', 'content', 'x'),
    field: fc.constantFrom('content', 'content', 'content', 'reasoning', 'reasoning_content'),
    also: fc.constantFrom(
      {},
      {},
      {},
      { role: 'assistant' },
      { content: null },
      { reasoning: 'why' },
      { tool_calls: [] },
      { refusal: null },
    ),
    top: fc.constantFrom({}, {}, {}, { usage: null }, { usage: { prompt_tokens: 1 } }, { content: 'content' }),
    finish: fc.constantFrom(null, null, null, '', 'stop'),
    indent: fc.constantFrom(0, 0, 0, 1),
  })
  .map(({ text, id, field, also, top, finish, indent }) =>
    JSON.stringify(
      { id, model: 'local', choices: [{ index: 0, delta: { ...also, [field]: text }, finish_reason: finish }], ...top },
      null,
      indent,
    ),
  );

t.test('any stream gives the same events with the shortcut as without', async () => {
  fc.assert(
    fc.property(fc.array(chunks, { minLength: 1, maxLength: 40 }), (lines) => {
      const [quick, full] = [takeAll(lines, false), takeAll(lines, true)];
      return JSON.stringify(quick) === JSON.stringify(full);
    }),
    { numRuns: 500 },
  );
});

t.test('so does a stream whose chunks differ in the text alone, and in broken ways', async () => {
  const line = (raw: string): string => `{"id":"content","choices":[{"delta":{"content":"${raw}"},"finish_reason":null}]}`;
  const raws = ['content', 'a', 'b"c', 'c\\n', '\\u0041', 'a\u0001', '', 'd"},"finish_reason":"stop', 'e\\', 'x'.repeat(13), 'f'];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...raws), { minLength: 2, maxLength: 30 }), (picked) => {
      const lines = picked.map(line);
      return JSON.stringify(takeAll(lines, false)) === JSON.stringify(takeAll(lines, true));
    }),
    { numRuns: 500 },
  );
});

t.test('the shortcut is taken, and given up where every chunk differs', async (t) => {
  let reads = 0;
  const template = new DeltaTemplate((data) => {
    reads += 1;
    return { type: 'text', text: (JSON.parse(data) as { text: string }).text };
  });
  t.equal(template.match('{"text":"a"}'), undefined, 'nothing is known at first');
  template.learn('{"text":"a"}', { type: 'text', text: 'a' });
  t.equal(template.match('{"text":"bc"}'), 'bc');
  t.equal(template.match('{"text":"b\\"c"}'), undefined);
  t.equal(template.match('{"text":""}'), undefined);
  for (let i = 0; i < 50; i += 1) template.learn(`{"text":"a","noise":${i}}`, { type: 'text', text: 'a' });
  t.ok(reads < 10, `${reads} extra parses`);
});
