/**
 * The secrets that are known by value: finds them in text that is about to be logged or shown, and takes them out.
 *
 * Finds a value as it is. What was encoded, cut or spelled apart is not found: a wall against accidents, not against malice.
 */
import type { JsonValue } from './errors.ts';

const mark = '[redacted]';
/** Shorter values, and those that look like words or numbers, would take harmless text out. */
const shortest = 8;
const most = 512;

export class SecretValues {
  readonly #pattern: RegExp | undefined;
  readonly #inJson: RegExp | undefined;

  constructor(values: Iterable<string>) {
    // The longest first: one secret may be the beginning of another.
    const secrets = [...new Set(values)]
      .filter(isFindable)
      .sort((a, b) => b.length - a.length)
      .slice(0, most);
    if (secrets.length === 0) return;
    this.#pattern = new RegExp(secrets.map(escaped).join('|'), 'g');
    this.#inJson = new RegExp(secrets.map((secret) => escaped(JSON.stringify(secret).slice(1, -1))).join('|'));
  }

  /** Whether JSON text may hold one. One search, however many there are. */
  mayBeIn(json: string): boolean {
    return this.#inJson?.test(json) === true;
  }

  inText(text: string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, mark);
  }

  /** A copy of plain data without them. Names of members stay as they are. */
  inData<T>(data: T): T {
    return this.#pattern === undefined ? data : (this.#copy(data as JsonValue) as T);
  }

  #copy(value: JsonValue): JsonValue {
    if (typeof value === 'string') return this.inText(value);
    if (Array.isArray(value)) return value.map((one) => this.#copy(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, this.#copy(one)]));
  }
}

export const noSecrets = new SecretValues([]);

function isFindable(value: string): boolean {
  return value.length >= shortest && !/^(?:\d+|[a-z]+|[A-Z]+)$/.test(value);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
