/**
 * Checks that an `outputSchema` is a JSON Schema that can be held against an answer. The validator finds a reference that
 * leads nowhere, or a broken pattern, only when an answer reaches it: after the money is spent.
 */
import type { JsonObject } from '../../../shared/errors.ts';
import { refusal } from './extension.ts';

const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];
const deepest = 100;
/** UTF-16 units of the paths of all its parts together: the validator keeps each of them. */
const longestPaths = 1024 * 1024;
/** Schemas that are held against one and the same value. Each reference can double them, so a short schema may ask for 2^1000. */
const mostAtOnce = 2_000;

/** @throws ServerError INVALID_PARAMS naming what is wrong */
export async function checkOutputSchema(schema: JsonObject): Promise<void> {
  if (depthOf(schema) > deepest) throw wrong(`it is nested deeper than ${deepest} levels`);
  if (pathsOf(schema, 0) > longestPaths) throw wrong('its names are too long for the number of its parts');
  // Where the validator notes what a reference leads to.
  if (JSON.stringify(schema).includes('"__absolute_')) throw wrong('a name in it is taken by the validator');
  const { dereference, Validator } = await import('@cfworker/json-schema');
  let lookup: Record<string, unknown>;
  let isTooMuch = false;
  try {
    // On a copy: both leave marks in what they are given.
    lookup = dereference(structuredClone(schema));
    const costs = new Map<object, number>();
    // Before anything is held against it: this thread serves every session.
    isTooMuch = Object.values(lookup).some((part) => costOf(part, lookup, costs) > mostAtOnce);
    const validator = new Validator(structuredClone(schema));
    for (const probe of isTooMuch ? [] : [{}, [], '', 0, null]) validator.validate(probe);
  } catch {
    // The library's text may quote the schema.
    throw wrong('it is no JSON Schema that can be compiled');
  }
  if (isTooMuch) throw wrong('it holds too many schemas against one value, or leads back to itself');
  for (const part of Object.values(lookup)) {
    if (typeof part === 'object' && part !== null) checkPart(part as Record<string, unknown>, lookup);
  }
}

function checkPart(part: Record<string, unknown>, lookup: Record<string, unknown>): void {
  const { type, $ref, pattern, patternProperties } = part;
  if (type !== undefined && ![type].flat().every((name) => types.includes(name as string)))
    throw wrong('a type in it is none of JSON Schema');
  const target = part['__absolute_ref__'];
  if ($ref !== undefined && (typeof target !== 'string' || lookup[target] === undefined)) {
    throw wrong('a $ref in it leads to nothing inside of it');
  }
  const patterns = [...(pattern === undefined ? [] : [pattern]), ...Object.keys((patternProperties as object | undefined) ?? {})];
  if (!patterns.every(compiles)) throw wrong('a pattern in it is no regular expression');
}

function compiles(pattern: unknown): boolean {
  try {
    return typeof pattern === 'string' && new RegExp(pattern, 'u') instanceof RegExp;
  } catch {
    // The answer says so.
    return false;
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce<number>((most, member) => Math.max(most, depthOf(member)), 0);
}

function pathsOf(value: unknown, above: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  // A character that a path cannot hold is written as up to nine.
  return Object.entries(value).reduce((sum, [key, part]) => sum + above + 9 * key.length + pathsOf(part, above + 9 * key.length), 0);
}

/** How many schemas are held against a value that meets this one; infinite where a reference comes back to where it began. */
function costOf(part: unknown, lookup: Record<string, unknown>, costs: Map<object, number>): number {
  if (typeof part !== 'object' || part === null) return 1;
  const known = costs.get(part);
  if (known !== undefined) return known;
  // For whoever comes back here meanwhile.
  costs.set(part, Infinity);
  const cost = inPlace(part as Record<string, unknown>, lookup).reduce<number>((sum, one) => sum + costOf(one, lookup, costs), 1);
  costs.set(part, cost);
  return cost;
}

/** The schemas that this one applies to the very same value. */
function inPlace(part: Record<string, unknown>, lookup: Record<string, unknown>): unknown[] {
  const { $ref, $recursiveRef, allOf, anyOf, oneOf, dependentSchemas, dependencies } = part;
  return [
    ...($ref === undefined ? [] : [lookup[String(part['__absolute_ref__'])]]),
    ...($recursiveRef === undefined ? [] : [lookup[String(part['__absolute_recursive_ref__'])]]),
    ...[allOf, anyOf, oneOf].filter(Array.isArray).flat(),
    ...[dependentSchemas, dependencies].flatMap((schemas) => Object.values((schemas as object | undefined) ?? {})),
    ...['not', 'if', 'then', 'else'].flatMap((key) => part[key] ?? []),
  ];
}

function wrong(reason: string): Error {
  return refusal('outputSchema', `expected a JSON Schema: ${reason}.`);
}
