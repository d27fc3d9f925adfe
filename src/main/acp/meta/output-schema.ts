/**
 * Checks that an `outputSchema` is a JSON Schema that can be held against an answer. The validator finds a reference that
 * leads nowhere, or a broken pattern, only when an answer reaches it: after the money is spent.
 */
import type { JsonObject } from '../../../shared/errors.ts';
import { refusal } from './extension.ts';

const types = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];
const deepest = 100;

/** @throws ServerError INVALID_PARAMS naming what is wrong */
export async function checkOutputSchema(schema: JsonObject): Promise<void> {
  if (depthOf(schema) > deepest) throw wrong(`it is nested deeper than ${deepest} levels`);
  const { dereference, Validator } = await import('@cfworker/json-schema');
  let lookup: Record<string, unknown>;
  try {
    // On a copy: both leave marks in what they are given.
    lookup = dereference(structuredClone(schema));
    const validator = new Validator(structuredClone(schema));
    // A reference that leads only to itself never comes to an end.
    for (const probe of [{}, [], '', 0, null]) validator.validate(probe);
  } catch {
    // The library's text may quote the schema.
    throw wrong('it is no JSON Schema that can be compiled');
  }
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

function wrong(reason: string): Error {
  return refusal('outputSchema', `expected a JSON Schema: ${reason}.`);
}
