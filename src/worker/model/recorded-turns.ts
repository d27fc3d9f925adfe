/**
 * The file format of recorded model streams, read and checked.
 *
 * A file is one JSON object, `{"turns": [turn, …]}`; a turn is one model call:
 *
 * - `chunks`: the data objects of the stream in order; a missing `[DONE]` is added behind the last one, unless `cut` is true. Or
 *   `sse`: the raw text of the stream, exactly as it came. A turn with `failure` or `hang` needs neither.
 * - `expect.lastUser`: a regular expression that the newest user message must match. `expect.requestHash`: what
 *   {@link requestHash} must give.
 * - `delayMs`: the pause before each chunk, or before the whole `sse` text.
 * - `failure`: `{code, message, status?, retryAfterMs?}`, thrown after what the turn holds was played.
 * - `hang`: after that nothing comes until the call is aborted.
 */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { ServerError } from '../../shared/errors.ts';
import { ModelFailure, type ModelFailureCode, type ModelRequest } from './model-adapter.ts';

const maxFileBytes = 64 * 1024 * 1024;
const maxCachedFiles = 8;

const failureCodes: ReadonlySet<string> = new Set<ModelFailureCode>([
  'AUTH',
  'QUOTA',
  'RATE_LIMIT',
  'INVALID_REQUEST',
  'CONTEXT_WINDOW',
  'SERVER',
  'TRANSPORT',
  'TIMEOUT',
  'STREAM_CLOSED',
  'MALFORMED_RESPONSE',
  'EMPTY_RESPONSE',
  'SCRIPT_MISMATCH',
]);

export interface RecordedTurn {
  readonly lastUser: RegExp | undefined;
  readonly requestHash: string | undefined;
  /** Pieces of the body, ready to be decoded: one per chunk, or the raw text as one. */
  readonly pieces: readonly Buffer[];
  readonly delayMs: number;
  readonly hang: boolean;
  readonly failure: (() => ModelFailure) | undefined;
}

/** SHA-256 (hex) over what a request says: system, messages, tools. */
export function requestHash(request: ModelRequest): string {
  const { system, messages, tools } = request;
  return createHash('sha256')
    .update(JSON.stringify([system, messages, tools]))
    .digest('hex');
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown, where: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError(`${where} must be an object`);
  return value as Fields;
}

interface FieldTypes {
  string: string;
  number: number;
  boolean: boolean;
}

/** The writer of a file must hear of a typing error now, and not as a strange stream later. */
function optional<T extends keyof FieldTypes>(fields: Fields, key: string, type: T, where: string): FieldTypes[T] | undefined {
  const value = fields[key];
  if (value !== undefined && typeof value !== type) throw new TypeError(`${where}.${key} must be a ${type}`);
  return value as FieldTypes[T] | undefined;
}

function readFailure(value: unknown, where: string): () => ModelFailure {
  const fields = fieldsOf(value, where);
  const code = fields['code'];
  if (typeof code !== 'string' || !failureCodes.has(code))
    throw new TypeError(`${where}.code must be one of ${[...failureCodes].join(', ')}`);
  const message = optional(fields, 'message', 'string', where);
  const status = optional(fields, 'status', 'number', where);
  const retryAfterMs = optional(fields, 'retryAfterMs', 'number', where);
  return () =>
    new ModelFailure(code as ModelFailureCode, message ?? `Recorded failure ${code}.`, {
      ...(status === undefined ? {} : { status }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
}

function readPieces(turn: Fields, where: string): Buffer[] {
  const sse = optional(turn, 'sse', 'string', where);
  if (sse !== undefined) return [Buffer.from(sse)];
  const chunks = turn['chunks'] ?? [];
  if (!Array.isArray(chunks)) throw new TypeError(`${where}.chunks must be an array`);
  const pieces = chunks.map((chunk, index) => Buffer.from(`data: ${JSON.stringify(fieldsOf(chunk, `${where}.chunks[${index}]`))}\n\n`));
  const ends = turn['cut'] !== true && turn['hang'] !== true && turn['failure'] === undefined;
  return ends ? [...pieces, Buffer.from('data: [DONE]\n\n')] : pieces;
}

function readTurn(value: unknown, index: number): RecordedTurn {
  const where = `turns[${index}]`;
  const turn = fieldsOf(value, where);
  const known = ['expect', 'chunks', 'sse', 'delayMs', 'failure', 'hang', 'cut'];
  const unknown = Object.keys(turn).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new TypeError(`${where}.${unknown} is not known; a turn has ${known.join(', ')}`);
  const expect = turn['expect'] === undefined ? {} : fieldsOf(turn['expect'], `${where}.expect`);
  const lastUser = optional(expect, 'lastUser', 'string', `${where}.expect`);
  return {
    lastUser: lastUser === undefined ? undefined : new RegExp(lastUser, 's'),
    requestHash: optional(expect, 'requestHash', 'string', `${where}.expect`),
    pieces: readPieces(turn, where),
    delayMs: optional(turn, 'delayMs', 'number', where) ?? 0,
    hang: optional(turn, 'hang', 'boolean', where) === true,
    failure: turn['failure'] === undefined ? undefined : readFailure(turn['failure'], `${where}.failure`),
  };
}

/** Reads the text of a file. @throws Error that names the field */
export function parseRecordedTurns(text: string): RecordedTurn[] {
  const { turns } = fieldsOf(JSON.parse(text), 'the file');
  if (!Array.isArray(turns)) throw new TypeError('turns must be an array');
  return turns.map(readTurn);
}

const cache = new Map<string, readonly RecordedTurn[]>();

/**
 * Loads a file; the sessions of a thread share what was read.
 *
 * @throws ServerError CONFIG_INVALID when it cannot be read or says something wrong
 */
export function loadRecordedTurns(path: string): readonly RecordedTurn[] {
  try {
    const stats = statSync(path);
    if (!stats.isFile() || stats.size > maxFileBytes) throw new Error(`must be a regular file of at most ${maxFileBytes} bytes`);
    const key = `${stats.ino}:${stats.mtimeMs}:${stats.size}:${path}`;
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const turns = parseRecordedTurns(readFileSync(path, 'utf8'));
    const oldest = cache.keys().next().value;
    if (cache.size >= maxCachedFiles && oldest !== undefined) cache.delete(oldest);
    cache.set(key, turns);
    return turns;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ServerError('CONFIG_INVALID', `The recorded model stream ${path} cannot be used: ${why}.`, { cause: error });
  }
}
