/**
 * The secrets that are known by value: finds them in text that is about to be logged or shown, and takes them out.
 *
 * Finds a value as it is. What was encoded, cut or spelled apart is not found: a wall against accidents, not against malice.
 */
import type { JsonValue } from './errors.ts';
import { SecretBeginnings } from './secret-beginnings.ts';
import { secretMark } from './secret-mark.ts';
import { SecretStream } from './secret-stream.ts';

/** Shorter values, and those that look like words or numbers, would take harmless text out. */
const shortest = 8;
/** Of longer ones the beginning is looked for: a stream holds back as much. */
const longest = 16 * 1024;
const most = 512;

export class SecretValues {
  /** One expression for all: several times quicker over a long text than any loop. */
  readonly #pattern: RegExp | undefined;
  /** As they stand in JSON. */
  readonly #inJson: RegExp | undefined;
  readonly #beginnings: SecretBeginnings | undefined;

  constructor(values: Iterable<string>) {
    // The longest first: one secret may be the beginning of another.
    const secrets = [...new Set(values)]
      .filter(isFindable)
      .map((secret) => secret.slice(0, longest))
      .sort((a, b) => b.length - a.length)
      .slice(0, most);
    if (secrets.length === 0) return;
    this.#pattern = new RegExp(secrets.map(escaped).join('|'), 'g');
    this.#inJson = new RegExp(secrets.map((secret) => escaped(JSON.stringify(secret).slice(1, -1))).join('|'));
    this.#beginnings = new SecretBeginnings(secrets);
  }

  /** Whether JSON text may hold one. One search, however many there are. */
  mayBeIn(json: string): boolean {
    return this.#inJson?.test(json) === true;
  }

  inText(text: string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, secretMark);
  }

  /** Also without an end that may be the beginning of one, but for two characters. */
  inUnfinished(text: string): string {
    return this.stream()?.take(text) ?? text;
  }

  /** A copy of plain data without them. Names of members stay as they are. */
  inData<T>(data: T): T {
    return this.#pattern === undefined ? data : (this.#copy(data as JsonValue) as T);
  }

  /** Plain data without them: the very same where none is in it, which is what most of it is. */
  without<T>(data: T): T {
    return this.#pattern !== undefined && this.mayBeIn(JSON.stringify(data) ?? '') ? this.inData(data) : data;
  }

  /** For a text that comes in pieces; `undefined` where there is no secret that could be in it. */
  stream(): SecretStream | undefined {
    return this.#beginnings === undefined ? undefined : new SecretStream(this.#beginnings);
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
