/**
 * Foreign JSON, small enough to be logged, shown and cloned. Pure.
 */
import type { JsonValue } from '../../../shared/errors.ts';

/** Whoever walks a value by recursion stays far from the end of its stack. */
const maxDepth = 32;

/** The value, or its beginning as text when its JSON is longer than `maxChars`; `undefined` when it is nested too deep. */
export function boundedJson(value: unknown, maxChars: number): JsonValue | undefined {
  const text = jsonText(value);
  if (text === undefined) return undefined;
  return text.length <= maxChars ? (value as JsonValue) : `${text.slice(0, maxChars)}…`;
}

/** The value; `undefined` when its JSON is longer than `maxChars`, or nested too deep. */
export function smallJson(value: unknown, maxChars: number): JsonValue | undefined {
  const text = jsonText(value);
  return text === undefined || text.length > maxChars ? undefined : (value as JsonValue);
}

function jsonText(value: unknown): string | undefined {
  return value === undefined || isDeeperThan(value, maxDepth) ? undefined : JSON.stringify(value);
}

function isDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return limit === 0 || Object.values(value).some((member) => isDeeperThan(member, limit - 1));
}
