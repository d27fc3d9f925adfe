/** The checks that all members of a policy share: a choice, a list of choices, a list of texts, the keys of a table. */
import { quoted } from '../../../shared/quoted.ts';
import { nearest } from '../config-error.ts';
import { policyFault } from './policy-fault.ts';

/** Where a value stands, for the message. */
export interface Place {
  /** For example `rules[2]`. */
  readonly place: string;
  /** The file or the member of the request. */
  readonly where: string;
}

export const longestList = 200;

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** A member of the value at `at`. */
export function member(at: Place, key: string | number): Place {
  return { ...at, place: typeof key === 'number' ? `${at.place}[${key}]` : `${at.place}.${key}` };
}

/** @throws ServerError CONFIG_INVALID for a key that is not among the known ones */
export function checkKeys(table: Record<string, unknown>, known: readonly string[], at: Place): void {
  for (const [key, value] of Object.entries(table)) {
    if (known.includes(key)) continue;
    const place = `${at.place}.${shownKey(key)}`;
    throw policyFault({
      place,
      expected: `only the keys ${known.join(', ')}`,
      came: value,
      where: at.where,
      suggestion: nearest(key, known),
    });
  }
}

/** A key that is not known is named all the same, as far as it fits on a line. */
export function shownKey(written: string): string {
  return quoted(written.slice(0, 60)).slice(1, -1);
}

/** @throws ServerError CONFIG_INVALID */
export function oneOf<T extends string>(value: unknown, choices: readonly T[], at: Place): T {
  const found = choices.find((one) => one === value);
  if (found !== undefined) return found;
  const suggestion = typeof value === 'string' ? nearest(value, choices) : undefined;
  throw policyFault({ ...at, expected: `one of ${choices.join(', ')}`, came: value, suggestion });
}

/** A list with something in it, each entry checked. @throws ServerError CONFIG_INVALID */
export function listOf<T>(value: unknown, what: string, at: Place, check: (entry: unknown, at: Place) => T): T[] {
  // An empty list might mean all or nothing: nobody has to guess.
  if (!Array.isArray(value) || value.length === 0 || value.length > longestList) {
    throw policyFault({ ...at, expected: `a list of 1 to ${longestList} ${what}`, came: value });
  }
  return value.map((entry: unknown, index) => check(entry, member(at, index)));
}

/** Text of bounded length without control characters. @throws ServerError CONFIG_INVALID */
export function shortText(value: unknown, what: string, longest: number, at: Place): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= longest && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)) return value;
  throw policyFault({ ...at, expected: `${what}: text of 1 to ${longest} characters on one line`, came: value });
}
