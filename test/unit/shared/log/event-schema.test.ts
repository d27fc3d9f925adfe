import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { eventTypes } from '../../../../src/shared/log/event-types.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { sampleHeader, sampleOptions, samples } from './sample-events.ts';

const root = new URL('../../../../../', import.meta.url);
const schema = JSON.parse(readFileSync(new URL('schemas/event-log.schema.json', root), 'utf8'));
const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
const names = Object.keys(eventTypes).sort();

function lineOf(value: object): unknown {
  return JSON.parse(sealLine(JSON.stringify(value)).toString());
}

t.test('the schema takes a header and a sample of every event, and each type only by its own shape', async (t) => {
  t.ok(validate(lineOf(sampleHeader())), 'header');
  for (const [type, data] of Object.entries(samples)) {
    t.ok(validate(lineOf({ type, seq: 0, time: 1, data })), type);
    t.notOk(validate({ type, seq: 0, time: 1, data: { ...data, extra: 1 } }), `${type} with a member too many`);
    const [first = ''] = Object.keys(data);
    const { [first as never]: _, ...less } = data as Record<string, unknown>;
    t.notOk(validate({ type, seq: 0, time: 1, data: less }), `${type} without ${first}`);
  }
});

t.test('the schema takes every end of a turn', async (t) => {
  const reasons = [
    ...['completed', 'max-tokens', 'refusal', 'cancelled', 'disposed', 'interrupted'].map((kind) => ({ kind })),
    ...['steps', 'tool-calls', 'wall-time', 'deadline', 'tokens', 'cost'].flatMap((budget) => [
      { kind: 'max-turn-requests', budget },
      { kind: 'max-turn-requests', budget, scope: 'session' },
    ]),
    { kind: 'error', code: 'MODEL_FAILED', message: 'HTTP 500' },
  ];
  for (const reason of reasons) {
    t.ok(validate({ type: 'turn/end', seq: 0, time: 1, data: { ...samples['turn/end'], reason } }), JSON.stringify(reason));
  }
  t.notOk(validate({ type: 'turn/end', seq: 0, time: 1, data: { ...samples['turn/end'], reason: { kind: 'error' } } }));
});

t.test('the schema takes a header with every option, and none with an option that it does not know', async (t) => {
  t.ok(validate(lineOf({ ...sampleHeader(), options: sampleOptions })));
  t.ok(validate(lineOf({ ...sampleHeader(), options: {} })));
  t.notOk(validate(lineOf({ ...sampleHeader(), options: { ...sampleOptions, env: { A: 'secret' } } })), 'an environment');
  t.notOk(validate(lineOf({ ...sampleHeader(), options: { budget: { maxSteps: 'many' } } })), 'a budget of another type');
});

t.test('a line as an older release wrote it is still valid', async (t) => {
  const { key: _, payload: __, budget: ___, traceparent: ____, ...start } = samples['turn/start'];
  t.ok(validate(lineOf({ type: 'turn/start', seq: 0, time: 1, data: start })));
  const { inputTokens, outputTokens, cacheReadTokens, reasoningTokens, steps, toolCalls, elapsedMs } = samples['turn/end'].usage;
  const usage = { inputTokens, outputTokens, cacheReadTokens, reasoningTokens, steps, toolCalls, elapsedMs };
  t.ok(validate(lineOf({ type: 'turn/end', seq: 0, time: 1, data: { turn: 1, reason: { kind: 'completed' }, usage } })));
});

t.test('the schema takes everything that a subagent does', async (t) => {
  const usage = samples['subagent/end'].usage;
  const activities = [
    { kind: 'text', text: 'Hello' },
    samples['subagent/activity'].activity,
    { kind: 'plan', entries: [{ content: 'Read', status: 'pending' }] },
    { kind: 'image', mimeType: 'image/png', bytes: 12, path: '/srv/state/x.d/1.png' },
    { kind: 'usage', usage },
  ];
  for (const activity of activities) {
    t.ok(validate(lineOf({ type: 'subagent/activity', seq: 0, time: 1, data: { callId: 'c', runId: 'r', activity } })), activity.kind);
  }
});

t.test('unknown events pass only when they are marked ignorable', async (t) => {
  t.ok(validate({ type: 'future/thing', seq: 0, time: 1, data: {}, ignorable: true }));
  t.notOk(validate({ type: 'future/thing', seq: 0, time: 1, data: {} }));
  t.notOk(validate({ type: 'turn/start', seq: 0, time: 1, data: {}, ignorable: true }));
});

t.test('schema, document and vocabulary name the same events', async (t) => {
  const inSchema = schema.$defs.event.oneOf.map((entry: { $ref: string }) => entry.$ref.slice('#/$defs/'.length).replace('~1', '/'));
  t.same(inSchema.sort(), names);
  const doc = readFileSync(new URL('docs/event-log.md', root), 'utf8');
  const inDoc = [...doc.matchAll(/^\| `([a-z]+\/[a-z]+)` \|(.*)$/gm)];
  t.same(inDoc.map((row) => row[1] ?? '').sort(), names);
  for (const row of inDoc) {
    const members = Object.keys(schema.$defs[row[1] ?? ''].properties.data.properties);
    const cell = (row[2] ?? '').split('|')[1] ?? '';
    t.same(
      members.filter((member) => !new RegExp(`\`${member}(\\[\\])?\\??\``).test(cell)),
      [],
      `the table names every member of ${row[1]}`,
    );
  }
});
