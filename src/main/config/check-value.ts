/** Checks one value against its row of the table. Values of flags and variables come as text, those of the file typed. */
import { isAbsolute, join, resolve } from 'node:path';
import { configError, nearest } from './config-error.ts';
import type { ValueType } from './key-spec.ts';
import { type KeyName, specOf } from './schema.ts';

export interface RawValue {
  readonly value: unknown;
  /** Whether numbers come as text. */
  readonly asText: boolean;
  /** The flag, the variable or the place in the file. */
  readonly where: string;
  /** What a relative path is relative to; `undefined` refuses one. */
  readonly baseDir: string | undefined;
}

/** What the table's type asks for, in words. */
export function describeType(type: ValueType): string {
  switch (type.kind) {
    case 'integer':
      return `a whole number from ${type.min} to ${type.max}`;
    case 'decimal':
      return `a number from ${type.min} to ${type.max}`;
    case 'choice':
      return `one of ${type.values.join(', ')}`;
    case 'text':
      return `text of 1 to ${type.maxLength} characters`;
    case 'url':
      return 'an http or https URL without user, query or fragment';
    case 'path':
      return 'a path';
    case 'names':
      return `at most ${type.most} names with commas between them, or an array of them in the file`;
    case 'word':
    default:
      return type.says;
  }
}

function toInteger(raw: RawValue, min: number, max: number): number | undefined {
  const { value } = raw;
  const number = raw.asText && typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= min && number <= max ? number : undefined;
}

function toDecimal(raw: RawValue, min: number, max: number): number | undefined {
  const { value } = raw;
  const number = raw.asText && typeof value === 'string' && /^\d{1,12}(?:\.\d{1,12})?$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number >= min && number <= max ? number : undefined;
}

/** @returns the URL without a slash at its end; `undefined` if it cannot be used */
export function normalUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  return url.href.replace(/\/+$/, '');
}

function toPath(text: string, raw: RawValue, home: string): string | undefined {
  if (text === '' || text.includes('\0')) return undefined;
  if (text === '~' || text.startsWith('~/')) return isAbsolute(home) ? join(home, text.slice(1)) : undefined;
  if (isAbsolute(text)) return resolve(text);
  return raw.baseDir === undefined ? undefined : resolve(raw.baseDir, text);
}

/** Names without blanks and commas, each once. */
function toNames(value: unknown, most: number): string | undefined {
  const given = typeof value === 'string' ? value.split(',').map((name) => name.trim()) : value;
  if (!Array.isArray(given)) return undefined;
  const names: readonly unknown[] = value === '' ? [] : given;
  const fits = names.length <= most && new Set(names).size === names.length;
  return fits && names.every((name) => typeof name === 'string' && /^[^\s,]{1,200}$/u.test(name)) ? names.join(',') : undefined;
}

/** The checked value; `undefined` when it is not of the type. */
export function acceptValue(type: ValueType, raw: RawValue, home: string): string | number | undefined {
  if (type.kind === 'integer') return toInteger(raw, type.min, type.max);
  if (type.kind === 'decimal') return toDecimal(raw, type.min, type.max);
  if (type.kind === 'names') return toNames(raw.value, type.most);
  const { value } = raw;
  if (typeof value !== 'string') return undefined;
  switch (type.kind) {
    case 'choice':
      return type.values.includes(value) ? value : undefined;
    case 'text':
      return value.trim() !== '' && value.length <= type.maxLength ? value : undefined;
    case 'word':
      return type.pattern.test(value) ? value : undefined;
    case 'url':
      return normalUrl(value);
    case 'path':
    default:
      return toPath(value, raw, home);
  }
}

/**
 * Gives the checked value.
 *
 * @throws ServerError CONFIG_INVALID with what was expected and what came; a secret's value is left out
 */
export function checkValue(name: KeyName, raw: RawValue, home: string): string | number {
  const { type, secret } = specOf(name);
  const value = acceptValue(type, raw, home);
  if (value !== undefined) return value;
  // A URL may hold a password, and a wrong one is as likely as any to be the reason.
  const hidden = secret === true || type.kind === 'url';
  const suggestion = type.kind === 'choice' && typeof raw.value === 'string' ? nearest(raw.value, type.values) : undefined;
  throw configError({ key: name, expected: describeType(type), ...(hidden ? {} : { came: raw.value }), where: raw.where, suggestion });
}
