/**
 * Checks a frame that an agent wrote against the schema of the ACP SDK, and for members that the schema does not know.
 *
 * The schema's root accepts nearly anything (extension methods may carry any value) and its objects are open. So the
 * definition is picked by method, and made closed first: every object of it refuses members that nothing in it names.
 * `_meta` and raw input and output stay open, as the protocol says.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';

type Schema = { [key: string]: unknown };

export interface AgentFrameContext {
  /** The method that a response answers; without it only the envelope of a response is checked. */
  readonly method?: string;
}

/** Every definition exists twice beside the original: closed, and as a part that leaves its own top open. */
const closedPrefix = 'closed:';
const partPrefix = 'part:';
/** Notes of the schema's generator, which the SDK does not check either. */
const uncheckedFormats = ['uint16', 'uint32', 'uint64', 'int32', 'int64', 'double', 'uri'];

const { validators } = loadSchema();

/** What is wrong with the frame, a line each; empty when it is a valid frame of an agent. */
export function validateAgentFrame(frame: unknown, context: AgentFrameContext = {}): string[] {
  if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) return ['the frame is not an object'];
  const members = frame as Record<string, unknown>;
  const problems = members['jsonrpc'] === '2.0' ? [] : ['jsonrpc is not "2.0"'];
  return [...problems, ...(members['method'] === undefined ? responseProblems(members, context) : callProblems(members))];
}

function callProblems(frame: Record<string, unknown>): string[] {
  const method = frame['method'];
  if (typeof method !== 'string') return ['method is not a string'];
  const isRequest = 'id' in frame;
  const envelope = unknownMembers(frame, ['jsonrpc', 'id', 'method', 'params'], method);
  // A method of our own carries what it likes.
  if (method.startsWith('_')) return envelope;
  const definition = validators.get(`${method} ${isRequest ? 'Request' : 'Notification'}`);
  if (definition?.side === 'agent') return [...envelope, `${method}: an agent does not send this, a client does`];
  if (definition === undefined) return [...envelope, `${method}: no such ${isRequest ? 'request' : 'notification'} in the schema`];
  return [...envelope, ...schemaProblems(definition.validate(), frame['params'], method)];
}

function responseProblems(frame: Record<string, unknown>, context: AgentFrameContext): string[] {
  const where = context.method === undefined ? 'response' : `response to ${context.method}`;
  const envelope = unknownMembers(frame, ['jsonrpc', 'id', 'result', 'error'], where);
  const id = frame['id'];
  if (typeof id !== 'string' && typeof id !== 'number' && id !== null) envelope.push(`${where}: the id is neither string, number nor null`);
  if ('result' in frame === 'error' in frame) return [...envelope, `${where}: exactly one of result and error is needed`];
  if ('error' in frame) return [...envelope, ...errorProblems(frame['error'], where)];
  if (context.method === undefined || context.method.startsWith('_')) return envelope;
  const definition = validators.get(`${context.method} Response`);
  if (definition?.side !== 'agent') return [...envelope, `${where}: the schema knows no such response of an agent`];
  return [...envelope, ...schemaProblems(definition.validate(), frame['result'], where)];
}

function errorProblems(error: unknown, where: string): string[] {
  if (typeof error !== 'object' || error === null) return [`${where}: error is not an object`];
  const { code, message } = error as Record<string, unknown>;
  const problems = unknownMembers(error as Record<string, unknown>, ['code', 'message', 'data'], `${where} error`);
  if (!Number.isInteger(code)) problems.push(`${where}: error.code is not an integer`);
  if (typeof message !== 'string' || message === '') problems.push(`${where}: error.message is not a text`);
  return problems;
}

function unknownMembers(object: Record<string, unknown>, known: readonly string[], where: string): string[] {
  return Object.keys(object)
    .filter((key) => !known.includes(key))
    .map((key) => `${where}: unknown member "${key}"`);
}

function schemaProblems(validate: ValidateFunction, value: unknown, where: string): string[] {
  if (validate(value)) return [];
  // `if` and the unions only repeat that one of their branches has failed.
  const errors = (validate.errors ?? []).filter(({ keyword }) => !['if', 'anyOf', 'oneOf'].includes(keyword));
  return [...new Set(errors.map((error) => `${where}${error.instancePath}: ${error.message ?? error.keyword}${detail(error)}`))];
}

function detail(error: ErrorObject): string {
  const { unevaluatedProperty, additionalProperty, allowedValue } = error.params as Record<string, string | undefined>;
  const name = unevaluatedProperty ?? additionalProperty ?? allowedValue;
  return name === undefined ? '' : ` (${name})`;
}

interface MethodDefinition {
  readonly side: string;
  /** Compiled by the first frame of its kind: all of them together take longer than most tests do. */
  readonly validate: () => ValidateFunction;
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

function loadSchema(): { validators: Map<string, MethodDefinition> } {
  const original = agentDefinitions();
  const definitions: Record<string, Schema> = {};
  for (const [name, schema] of Object.entries(original)) {
    definitions[closedPrefix + name] = closeSchema(schema);
    definitions[partPrefix + name] = closeSchema(schema, true);
  }
  // Neither checked against the schema of schemas nor made quick: each process compiles a few of them, for a few frames.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, code: { optimize: false } });
  for (const format of uncheckedFormats) ajv.addFormat(format, true);
  ajv.addSchema({ $id: 'acp', $defs: definitions });
  const validators = new Map<string, MethodDefinition>();
  for (const [name, schema] of Object.entries(original)) {
    const shape = /(Request|Response|Notification)$/.exec(name)?.[1];
    if (shape === undefined || typeof schema['x-method'] !== 'string') continue;
    const reference = { $ref: `acp#/$defs/${encodeURIComponent(closedPrefix + name)}` };
    // Ajv gives the same function for the same object.
    validators.set(`${schema['x-method']} ${shape}`, { side: String(schema['x-side']), validate: () => ajv.compile(reference) });
  }
  return { validators };
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
