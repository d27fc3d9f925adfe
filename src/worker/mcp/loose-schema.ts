/**
 * The part of a server's schema that arguments are checked against here. Whatever could make the check itself a trap is
 * left to the server, which checks again: patterns that take for ever, references that multiply, comparisons of all with
 * all. What is left never refuses more than the whole schema does. Pure.
 */
import type { JsonObject, JsonValue } from '../../shared/errors.ts';

/** A schema that takes at least what the given one takes. */
export function looseSchema(schema: JsonObject): JsonObject {
  return loosen(schema).schema as JsonObject;
}

interface Loosened {
  readonly schema: JsonValue;
  /** It may take more than the given one. */
  readonly isLooser: boolean;
}

const leftOut = new Set([
  '$ref',
  '$defs',
  'definitions',
  'pattern',
  'format',
  'patternProperties',
  'propertyNames',
  'uniqueItems',
  'unevaluatedItems',
  'unevaluatedProperties',
  'dependentSchemas',
  'if',
  'then',
  'else',
]);
/** What fails in here makes the whole succeed, or the other way round: kept only where nothing in it was loosened. */
const exact = new Set(['not', 'oneOf', 'contains']);
const inOne = new Set(['additionalProperties', 'items', 'additionalItems', ...exact]);
const inList = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
/** Notes that check nothing. */
const notes = new Set(['$defs', 'definitions']);

function loosen(value: JsonValue): Loosened {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { schema: value, isLooser: false };
  let isLooser = false;
  const entries: [string, JsonValue][] = [];
  for (const [key, member] of Object.entries(value)) {
    // Names that a pattern allows would else be refused as unknown.
    if (leftOut.has(key) || (key === 'additionalProperties' && Object.hasOwn(value, 'patternProperties'))) {
      isLooser ||= !notes.has(key);
      continue;
    }
    const copy = loosenMember(key, member);
    isLooser ||= copy.isLooser;
    if (!copy.isLooser || !exact.has(key)) entries.push([key, copy.schema]);
  }
  return { schema: Object.fromEntries(entries), isLooser };
}

function loosenMember(key: string, member: JsonValue): Loosened {
  if (key === 'properties' && typeof member === 'object' && member !== null && !Array.isArray(member)) {
    const entries = Object.entries(member).map(([name, one]) => [name, loosen(one)] as const);
    return {
      schema: Object.fromEntries(entries.map(([name, one]) => [name, one.schema])),
      isLooser: entries.some(([, one]) => one.isLooser),
    };
  }
  if (Array.isArray(member) && (inList.has(key) || key === 'items')) {
    const list = member.map(loosen);
    return { schema: list.map((one) => one.schema), isLooser: list.some((one) => one.isLooser) };
  }
  return inOne.has(key) ? loosen(member) : { schema: member, isLooser: false };
}
