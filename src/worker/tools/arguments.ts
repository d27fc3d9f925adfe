/**
 * Checks the arguments a model sent against a tool's schema, and says what is wrong in words a model can act on.
 *
 * Nothing runs on arguments that did not parse whole and match. Values are never repeated: only their kind and size.
 */
import { Validator } from '@cfworker/json-schema';
import type { OutputUnit, Schema, ValidationResult } from '@cfworker/json-schema';

/** Longer arguments are refused unread. In UTF-16 units. */
const maxArgumentsLength = 16 * 1024 * 1024;
/** Up to this length every fault is named; beyond it only the first, which costs less. */
const maxLengthForAll = 64 * 1024;
const maxFaults = 5;
const maxNameLength = 80;

export type ParsedArguments =
  | { readonly ok: true; readonly args: unknown }
  | { readonly ok: false; readonly code: 'INVALID_ARGS' | 'UNKNOWN_TOOL'; readonly text: string };

/** Checks for one tool. The validators are made when they are first needed. */
export class ArgumentChecker {
  readonly #toolName: string;
  readonly #schema: Schema;
  #first: Validator | undefined;
  #all: Validator | undefined;

  constructor(toolName: string, parameters: object) {
    this.#toolName = toolName;
    this.#schema = parameters;
  }

  /** Parses and checks the JSON text of a call. Blank text stands for no arguments. Never throws. */
  parse(rawArguments: string): ParsedArguments {
    if (rawArguments.length > maxArgumentsLength) {
      return this.#invalid(`are ${rawArguments.length} characters long; at most ${maxArgumentsLength} are taken`);
    }
    let args: unknown;
    try {
      args = rawArguments.trim() === '' ? {} : JSON.parse(rawArguments);
    } catch (error) {
      return this.#invalid(`are not valid JSON: ${jsonFault(error, rawArguments)}`);
    }
    const faults = this.#faults(args, rawArguments.length <= maxLengthForAll);
    return faults.length === 0 ? { ok: true, args } : this.#invalid(`do not match its schema: ${faults.join('; ')}`);
  }

  #invalid(what: string): ParsedArguments {
    const text = `The arguments of ${this.#toolName} ${what}. Nothing was executed. Correct them and call again with one complete JSON object.`;
    return { ok: false, code: 'INVALID_ARGS', text };
  }

  #faults(args: unknown, all: boolean): string[] {
    const result = this.#validate(args, all);
    if (result === undefined) {
      return ['a name in them is not well-formed Unicode'];
    }
    if (result.valid) {
      return [];
    }
    const faults = new Set<string>();
    for (const unit of result.errors) {
      const fault = describeFault(unit, this.#schema, args);
      if (fault !== undefined && faults.size < maxFaults) {
        faults.add(fault);
      }
    }
    return faults.size === 0 ? ['they have another shape than it asks for'] : [...faults];
  }

  /** `undefined` where the validator cannot write down where a value stands: it escapes names as addresses do. */
  #validate(args: unknown, all: boolean): ValidationResult | undefined {
    try {
      return this.#validator(all).validate(args);
    } catch (error) {
      if (error instanceof URIError) {
        return undefined;
      }
      throw error;
    }
  }

  #validator(all: boolean): Validator {
    if (all) {
      this.#all ??= new Validator(this.#schema, '2020-12', false);
      return this.#all;
    }
    this.#first ??= new Validator(this.#schema, '2020-12', true);
    return this.#first;
  }
}

/** A text that ends too early was most likely cut off by the model's output limit; that needs another cure than a typo. */
function jsonFault(error: unknown, raw: string): string {
  const message = error instanceof Error ? error.message : '';
  const position = /at position (\d+)/.exec(message)?.[1];
  const atEnd = position !== undefined && Number(position) >= raw.trimEnd().length;
  return atEnd || /Unterminated|Unexpected end/.test(message) ? 'they end too early, as if cut off' : 'they cannot be parsed';
}

/** One fault in words, or `undefined` for entries that only say that something below them failed. */
function describeFault(unit: OutputUnit, schema: Schema, args: unknown): string | undefined {
  const where = pathText(unit.instanceLocation);
  const value = lookUp(args, unit.instanceLocation);
  switch (unit.keyword) {
    case 'properties':
    case 'items':
    case 'additionalProperties':
    case 'prefixItems':
      return undefined;
    case 'false':
      // The validator also says this of a declared property that failed its own check.
      return isDeclared(schema, unit.keywordLocation) ? undefined : `${where}: there is no such argument`;
    case 'required':
      return `${where}: required but missing: ${missingNames(lookUp(schema, unit.keywordLocation), value)}`;
    case 'type':
      return `${where}: expected ${String(lookUp(schema, unit.keywordLocation))}, got ${kindOf(value)}`;
    case 'enum':
      return `${where}: expected one of ${JSON.stringify(lookUp(schema, unit.keywordLocation))}, got another ${kindOf(value)}`;
    default:
      return `${where}: expected ${unit.keyword} ${JSON.stringify(lookUp(schema, unit.keywordLocation))}, got ${sizeOf(value)}`;
  }
}

/** `#/todos/0/content` → `todos[0].content`, bounded. */
function pathText(pointer: string): string {
  let text = '';
  for (const part of pointerParts(pointer)) {
    text += /^\d+$/.test(part) ? `[${part}]` : `${text === '' ? '' : '.'}${part}`;
  }
  if (text === '') {
    return 'the arguments';
  }
  return text.length <= maxNameLength ? text : `${text.slice(0, maxNameLength)}…`;
}

function pointerParts(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function lookUp(root: unknown, pointer: string): unknown {
  let value = root;
  for (const part of pointerParts(pointer)) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) {
      return undefined;
    }
    value = Object.getOwnPropertyDescriptor(value, part)?.value;
  }
  return value;
}

/** The validator puts the property's name in place of `additionalProperties` in the location; see whether it is declared there. */
function isDeclared(schema: Schema, keywordLocation: string): boolean {
  const parts = pointerParts(keywordLocation);
  const name = parts.pop();
  const own = [...parts.filter((part) => part !== 'additionalProperties'), 'properties'];
  const declared = lookUp(schema, `#/${own.join('/')}`);
  return name !== undefined && typeof declared === 'object' && declared !== null && Object.hasOwn(declared, name);
}

function missingNames(required: unknown, value: unknown): string {
  const names: unknown[] = Array.isArray(required) ? required : [];
  const present = typeof value === 'object' && value !== null ? value : {};
  return names.filter((name) => typeof name === 'string' && !Object.hasOwn(present, name)).join(', ');
}

function kindOf(value: unknown): string {
  if (value === null) {
    return 'null';
  }
  return Array.isArray(value) ? 'array' : typeof value;
}

function sizeOf(value: unknown): string {
  if (typeof value === 'string') {
    return `a string of ${value.length} characters`;
  }
  if (Array.isArray(value)) {
    return `an array of ${value.length}`;
  }
  return typeof value === 'number' ? String(value) : kindOf(value);
}
