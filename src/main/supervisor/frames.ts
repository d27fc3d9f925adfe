/**
 * The little that a supervisor knows of JSON-RPC: reading an object from a line, and the frames it makes itself.
 */
import { errorCatalogue, type ErrorCode, type JsonObject } from '../../shared/errors.ts';

/** A frame as it came: nothing of it has been checked. */
export interface LooseFrame {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** `undefined` for whatever is not one JSON object. */
export function parseFrame(line: string): LooseFrame | undefined {
  try {
    // As the server does, which takes a byte order mark for nothing.
    const value: unknown = JSON.parse(line.charCodeAt(0) === 0xfeff ? line.slice(1) : line);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined; // Whoever it is for says what is wrong with it.
  }
}

/** Tells `1` from `"1"`; `undefined` for what cannot be an id. */
export function idKey(id: unknown): string | undefined {
  return typeof id === 'string' || typeof id === 'number' || id === null ? JSON.stringify(id) : undefined;
}

/** A member of an object, if it is one. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

/** The frame with one more member of `params._meta`; `undefined` where there is no place for it. */
export function lineWithMeta(frame: LooseFrame, name: string, value: object): string | undefined {
  const { params } = frame;
  const meta = member(params, '_meta') ?? {};
  // Whatever is wrong with it, the server says it of what the client sent.
  if (!isPlain(params) || !isPlain(meta)) return undefined;
  return JSON.stringify({ ...frame, params: { ...params, _meta: { ...meta, [name]: value } } });
}

export function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function resultLine(id: unknown, result: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

export function errorLine(id: unknown, code: ErrorCode, message: string, data: JsonObject = {}): string {
  const { rpcCode, hint } = errorCatalogue[code];
  const details = `${message} ${hint}`;
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: rpcCode, message, data: { ...data, code, details } } });
}
