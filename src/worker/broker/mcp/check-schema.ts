/**
 * The schema of a server's tool, made anew from what is known of JSON Schema. A model provider refuses a whole request for
 * one bad schema, and a schema is read by the model: so what is wrong refuses the tool, and what is unknown is left out.
 */
import type { JsonObject, JsonValue } from '../../../shared/errors.ts';
import { cleanText, hidesSomething } from './clean-text.ts';

export type CheckedSchema = { readonly ok: true; readonly schema: JsonObject } | { readonly ok: false; readonly why: string };

/** Of the whole schema as JSON, in UTF-16 units. */
export const longestSchema = 32 * 1024;
const deepest = 24;
const longestText = 2000;
const longestName = 200;
const longestPattern = 500;

const typeNames = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
const inOneSchema = new Set(
  'additionalProperties items contains propertyNames not if then else additionalItems unevaluatedItems unevaluatedProperties'.split(' '),
);
const inSchemaMap = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
const inSchemaList = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const numbers = new Set(
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'.split(
    ' ',
  ),
);
const flags = new Set(['uniqueItems', 'deprecated', 'readOnly', 'writeOnly', 'nullable']);
const texts = new Set(['title', 'description']);
const words = new Set(['format', 'contentEncoding', 'contentMediaType']);
const values = new Set(['const', 'default', 'enum', 'examples']);

/** Thrown within, and never out of here. */
class Refused extends Error {}

/** `value` is what the server gave as `inputSchema`. */
export function checkToolSchema(value: unknown): CheckedSchema {
  try {
    if (!isRecord(value)) throw new Refused('its schema is not an object');
    if (value['type'] !== undefined && value['type'] !== 'object') throw new Refused('its arguments are not an object');
    const copy = copySchema(value, deepest) as JsonObject;
    const schema: JsonObject = { ...copy, type: 'object', properties: copy['properties'] ?? {} };
    if (JSON.stringify(schema).length > longestSchema) throw new Refused(`its schema is longer than ${longestSchema} characters`);
    refuseLostReferences(schema, schema);
    return { ok: true, schema };
  } catch (error) {
    return { ok: false, why: error instanceof Refused ? error.message : 'its schema cannot be read' };
  }
}

function copySchema(value: unknown, depth: number): JsonValue {
  if (typeof value === 'boolean') return value;
  if (!isRecord(value)) throw new Refused('its schema holds something that is not a schema');
  if (depth === 0) throw new Refused(`its schema is nested deeper than ${deepest} levels`);
  const entries: [string, JsonValue][] = [];
  for (const [key, member] of Object.entries(value)) {
    const copy = copyMember(key, member, depth - 1);
    if (copy !== undefined) entries.push([key, copy]);
  }
  return Object.fromEntries(entries);
}

/** `undefined` leaves the keyword out. */
function copyMember(key: string, member: unknown, depth: number): JsonValue | undefined {
  if (inOneSchema.has(key)) {
    // Of older drafts: a list of them.
    return key === 'items' && Array.isArray(member) ? member.map((one) => copySchema(one, depth)) : copySchema(member, depth);
  }
  if (inSchemaMap.has(key)) return copySchemaMap(key, member, depth);
  if (inSchemaList.has(key)) {
    if (!Array.isArray(member) || member.length === 0) throw new Refused(`its schema has an ${key} that is not a list of schemas`);
    return member.map((one) => copySchema(one, depth));
  }
  if (numbers.has(key)) return typeof member === 'number' && Number.isFinite(member) ? member : undefined;
  if (flags.has(key)) return typeof member === 'boolean' ? member : undefined;
  if (texts.has(key)) return typeof member === 'string' ? cleanText(member, longestText) : undefined;
  if (words.has(key)) return typeof member === 'string' && member.length <= longestName && !hidesSomething(member) ? member : undefined;
  if (values.has(key)) return copyValues(key, member, depth);
  if (key === 'pattern') return typeof member === 'string' && member.length <= longestPattern ? member : undefined;
  if (key === 'type') return copyType(member);
  if (key === 'required') return copyNames(member);
  if (key === 'dependentRequired' && isRecord(member)) {
    return Object.fromEntries(Object.entries(member).map(([name, names]) => [propertyName(name), copyNames(names)]));
  }
  if (key === '$ref') return copyReference(member);
  if (key === '$dynamicRef' || key === '$recursiveRef')
    throw new Refused('its schema refers to other schemas in a way that is not followed here');
  return undefined;
}

function copySchemaMap(key: string, member: unknown, depth: number): JsonValue {
  if (!isRecord(member)) throw new Refused(`its schema has ${key} that are not an object`);
  return Object.fromEntries(Object.entries(member).map(([name, one]) => [propertyName(name), copySchema(one, depth)]));
}

function copyValues(key: string, member: unknown, depth: number): JsonValue {
  if (key === 'enum' && !Array.isArray(member)) throw new Refused('its schema has an enum that is not a list');
  return copyJson(member, depth);
}

/** A string among values is not changed: it would be another value. */
function copyJson(value: unknown, depth: number): JsonValue {
  if (typeof value === 'string') {
    if (hidesSomething(value.replaceAll(/[\n\t]/g, ''))) throw new Refused('its schema holds hidden characters');
    return value;
  }
  if (typeof value !== 'object' || value === null) return value as JsonValue;
  if (depth <= 0) throw new Refused(`its schema is nested deeper than ${deepest} levels`);
  if (Array.isArray(value)) return value.map((one) => copyJson(one, depth - 1));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [propertyName(name), copyJson(one, depth - 1)]));
}

function copyType(member: unknown): JsonValue {
  const names: unknown[] = Array.isArray(member) ? member : [member];
  if (names.length === 0 || !names.every((name) => typeof name === 'string' && typeNames.has(name))) {
    throw new Refused('its schema names a type that there is not');
  }
  return member as JsonValue;
}

function copyNames(member: unknown): JsonValue {
  // Of an older draft, where it stood with each property.
  if (!Array.isArray(member)) return [];
  return member.map((name) => propertyName(name));
}

function propertyName(name: unknown): string {
  if (typeof name !== 'string' || name.length > longestName || name === '__proto__' || hidesSomething(name)) {
    throw new Refused('its schema has a name that is too long, or holds hidden characters');
  }
  return name;
}

function copyReference(member: unknown): string {
  if (typeof member === 'string' && /^#(?:\/|$)/.test(member) && member.length <= longestName) return member;
  throw new Refused('its schema refers to another document');
}

/** A reference must lead to what is left of the schema. */
function refuseLostReferences(value: JsonValue, root: JsonObject): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) {
    const { $ref } = value;
    if (typeof $ref === 'string' && !leadsToSchema($ref, root)) throw new Refused('its schema refers to a part that there is not');
  }
  for (const member of Object.values(value)) refuseLostReferences(member, root);
}

function leadsToSchema(reference: string, root: JsonObject): boolean {
  let value: JsonValue | undefined = root;
  for (const part of decodeURIComponent(reference).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return false;
    value = Array.isArray(value) ? value[Number(key)] : value[key];
  }
  return typeof value === 'boolean' || isRecord(value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
