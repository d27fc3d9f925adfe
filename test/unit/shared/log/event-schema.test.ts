import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { eventTypes } from '../../../../src/shared/log/event-types.ts';
import { sealLine } from '../../../../src/shared/log/line-seal.ts';
import { sampleHeader, samples } from './sample-events.ts';

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
    ...['steps', 'tool-calls', 'wall-time'].map((budget) => ({ kind: 'max-turn-requests', budget })),
    { kind: 'error', code: 'MODEL_FAILED', message: 'HTTP 500' },
  ];
  for (const reason of reasons) {
    t.ok(validate({ type: 'turn/end', seq: 0, time: 1, data: { ...samples['turn/end'], reason } }), JSON.stringify(reason));
  }
  t.notOk(validate({ type: 'turn/end', seq: 0, time: 1, data: { ...samples['turn/end'], reason: { kind: 'error' } } }));
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
