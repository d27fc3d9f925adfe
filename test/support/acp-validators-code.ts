/**
 * The schema of ACP, closed, as JavaScript that checks values: what `acp-validators.ts` keeps below `build/`.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standaloneCode from 'ajv/dist/standalone/index.js';

type Schema = { [key: string]: unknown };

/** Every definition exists twice beside the original: closed, and as a part that leaves its own top open. */
const closedPrefix = 'closed:';
const partPrefix = 'part:';
/** Notes of the schema's generator, which the SDK does not check either. */
const uncheckedFormats = ['uint16', 'uint32', 'uint64', 'int32', 'int64', 'double', 'uri'];

/**
 * A CommonJS module that exports `sides`, who has which message, and a function for each message of an agent, by method and shape:
 * `session/prompt Response`.
 */
export function validatorsCode(): string {
  const original = agentDefinitions();
  const definitions: Record<string, Schema> = {};
  for (const [name, schema] of Object.entries(original)) {
    definitions[closedPrefix + name] = closeSchema(schema);
    definitions[partPrefix + name] = closeSchema(schema, true);
  }
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, code: { source: true } });
  for (const format of uncheckedFormats) ajv.addFormat(format, true);
  ajv.addSchema({ $id: 'acp', $defs: definitions });
  const sides: Record<string, string> = {};
  const exported: Record<string, string> = {};
  for (const [name, schema] of Object.entries(original)) {
    const shape = /(Request|Response|Notification)$/.exec(name)?.[1];
    if (shape === undefined || typeof schema['x-method'] !== 'string') continue;
    const message = `${schema['x-method']} ${shape}`;
    sides[message] = String(schema['x-side']);
    // The schema says who answers: an agent sends its own responses, and what a client answers.
    if ((sides[message] === 'agent') === (shape === 'Response')) exported[message] = `acp#/$defs/${closedPrefix}${name}`;
  }
  return `${standaloneCode.default(ajv, exported)}\nexports.sides = ${JSON.stringify(sides)};\n`;
}

function definitionsOf(file: string): Record<string, Schema> {
  const path = new URL(`../../../node_modules/@agentclientprotocol/sdk/schema/v1/${file}`, import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as { $defs: Record<string, Schema> }).$defs;
}

/** The stable schema, with `session/fork` of the unstable one. */
function agentDefinitions(): Record<string, Schema> {
  const stable = definitionsOf('schema.json');
  const unstable = definitionsOf('schema.unstable.json');
  const capabilities = (definitions: Record<string, Schema>) =>
    definitions['SessionCapabilities']?.['properties'] as Record<string, Schema>;
  capabilities(stable)['fork'] = capabilities(unstable)['fork']!;
  for (const name of ['SessionForkCapabilities', 'ForkSessionResponse']) stable[name] = unstable[name]!;
  return stable;
}

/**
 * A copy in which objects refuse unknown members. An object that takes members from `allOf`, or from a union, closes as a whole: its parts
 * leave their top open, since each of them sees only its own members.
 */
function closeSchema(schema: Schema, isPart = false): Schema {
  const isObject = 'properties' in schema;
  const copy: Schema = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === '$ref') copy[key] = reference(String(value), isPart);
    else if (key === 'allOf') copy[key] = (value as Schema[]).map((part) => closeSchema(part, isPart || isObject));
    else if (key === 'anyOf' || key === 'oneOf')
      Object.assign(copy, closeUnion(key, value as Schema[], { tag: tagOf(schema), isPart: isPart || isObject }));
    else if (key === 'properties') copy[key] = mapValues(value as Record<string, Schema>, (member) => closeSchema(member));
    else if ((key === 'items' || key === 'additionalProperties') && typeof value === 'object') copy[key] = closeSchema(value as Schema);
    else copy[key] = value;
  }
  if (isObject && !isPart && !('additionalProperties' in schema)) copy['unevaluatedProperties'] = false;
  return copy;
}

/** A union with a tag becomes one `if` per branch, so that only the branch meant reports what is wrong with it. */
function closeUnion(key: 'anyOf' | 'oneOf', branches: Schema[], options: { tag: string | undefined; isPart: boolean }): Schema {
  const { tag, isPart } = options;
  const closed = branches.map((branch) => closeSchema(branch, isPart));
  const constants = branches.map((branch) => constantOf(branch, tag));
  if (constants.includes(undefined)) return { [key]: closed };
  if (tag === undefined) return { enum: constants };
  // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema, never awaited
  const choices = closed.map((branch, index) => ({ if: tagIs(tag, { const: constants[index] }), then: branch }));
  return { allOf: [tagIs(tag, { enum: constants }), ...choices] };
}

function constantOf(branch: Schema, tag: string | undefined): unknown {
  if (tag === undefined) return branch['const'];
  return (branch['properties'] as Record<string, Schema> | undefined)?.[tag]?.['const'];
}

function tagOf(schema: Schema): string | undefined {
  return (schema['discriminator'] as { propertyName: string } | undefined)?.propertyName;
}

function tagIs(tag: string, test: Schema): Schema {
  return { properties: { [tag]: test }, required: [tag] };
}

function reference(original: string, isPart: boolean): string {
  return original.replace('#/$defs/', `#/$defs/${encodeURIComponent(isPart ? partPrefix : closedPrefix)}`);
}

function mapValues(object: Record<string, Schema>, change: (value: Schema) => Schema): Record<string, Schema> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
