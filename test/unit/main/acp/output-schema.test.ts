/** A schema comes from a client and is looked at on the thread that serves every session: no schema may hold that up. */
import t from 'tap';
import { checkOutputSchema } from '../../../../src/main/acp/meta/output-schema.ts';
import type { JsonObject } from '../../../../src/shared/errors.ts';
import { FinalAnswer } from '../../../../src/worker/tools/final-answer.ts';

const defs = (count: number, part: (next: object, index: number) => object, last: object): JsonObject => {
  const $defs = Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`a${index}`, part({ $ref: `#/$defs/a${index + 1}` }, index)]),
  );
  return { type: 'object', allOf: [{ $ref: '#/$defs/a0' }], $defs: { ...$defs, [`a${count}`]: last } } as JsonObject;
};
const refusal = async (schema: unknown): Promise<string> => {
  try {
    await checkOutputSchema(schema as JsonObject);
    return 'taken';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

t.test('references that double at each level are refused before anything is held against them', async (t) => {
  const twice = {
    allOf: defs(40, (next) => ({ allOf: [next, next] }), { type: 'object' }),
    anyOf: defs(40, (next) => ({ anyOf: [next, next] }), { type: 'string', minLength: 9 }),
    oneOf: defs(40, (next) => ({ oneOf: [next, next] }), { type: 'object' }),
    conditions: defs(40, (next) => Object.fromEntries(['if', 'then', 'else'].map((key) => [key, next])), { type: 'object' }),
    dependent: defs(40, (next) => ({ dependentSchemas: { a: next, b: next } }), { type: 'object' }),
    negated: defs(40, (next) => ({ not: next, allOf: [next] }), { type: 'object' }),
    'in an item': {
      type: 'object',
      properties: { a: { $ref: '#/$defs/a0' } },
      $defs: (defs(40, (next) => ({ allOf: [next, next] }), {}) as any).$defs,
    },
    'with its marks forged': { ...defs(30, (next) => ({ allOf: [{ ...next, __absolute_ref__: '' }, next] }), {}) },
  };
  const started = process.cpuUsage();
  for (const [name, schema] of Object.entries(twice)) t.match(await refusal(schema), /outputSchema: expected a JSON Schema: /, name);
  const { user, system } = process.cpuUsage(started);
  t.ok((user + system) / 1e6 < 5, 'within seconds, where each of them would take years');
});

t.test('references that lead back to themselves are refused; a tree of values is not', async (t) => {
  t.match(
    await refusal({ $ref: '#/$defs/a', $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } } }),
    /leads back/,
  );
  t.match(await refusal({ type: 'object', properties: { a: { $ref: '#/properties/a' } } }), /leads back/);
  const tree = { type: 'object', properties: { left: { $ref: '#' }, right: { $ref: '#' }, name: { type: 'string' } }, required: ['name'] };
  t.equal(await refusal(tree), 'taken');
  const union = {
    type: 'object',
    properties: { of: { oneOf: Array.from({ length: 200 }, (_, index) => ({ allOf: [{ const: index }, { type: 'number' }] })) } },
  };
  t.equal(await refusal(union), 'taken');
});

t.test('long names above many parts are refused: the validator would keep the path of each', async (t) => {
  const parts = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`a${index}`, {}]));
  t.match(await refusal({ properties: { ['k'.repeat(30_000)]: { properties: parts } } }), /names are too long/);
  t.equal(await refusal({ properties: { some: { properties: parts } } }), 'taken');
});

t.test('hostile arguments of a final answer are an answer of their own, and never a throw', async (t) => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const schemas: JsonObject[] = [
    {},
    { type: 'object', additionalProperties: true },
    { type: 'array', uniqueItems: true },
    { const: { a: [] } },
  ];
  for (const schema of schemas) {
    const answer = new FinalAnswer(schema);
    for (const raw of [
      `{"answer":${deep}}`,
      deep,
      '{"answer":{"__proto__":{"polluted":1}}}',
      '{"__proto__":{"answer":1}}',
      '{"answer":1,"answer":2}',
      'null',
      '7',
      '',
    ]) {
      const parsed = answer.parseArguments(raw);
      t.type(parsed.ok, 'boolean');
      if (parsed.ok) t.doesNotThrow(() => answer.valueOf(parsed.args));
    }
  }
  t.equal(({} as Record<string, unknown>)['polluted'], undefined);
});
