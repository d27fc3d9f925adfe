/**
 * What a parsed line is, as far as JSON-RPC goes: a request, a notification, a response, nothing, or a mistake with the
 * answer it gets.
 *
 * Pure. It looks only at own properties, so keys such as `__proto__` mean nothing here, and no answer repeats any text
 * of the input but the id.
 */
import type { AnyNotification, AnyRequest, AnyResponse } from '@agentclientprotocol/sdk';
import type { ErrorCode } from '../../shared/errors.ts';
import { errorCatalogue } from '../../shared/errors.ts';

/** As JSON-RPC has it. As a `Map` key it keeps `1`, `"1"` and `null` apart. */
export type RequestId = string | number | null;

/** An error response that this transport gives by itself. */
export interface ErrorFrame {
  readonly jsonrpc: '2.0';
  readonly id: RequestId;
  readonly error: { readonly code: number; readonly message: string; readonly data: { readonly code: ErrorCode } };
}

export type Envelope =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly message: AnyRequest }
  | { readonly kind: 'notification'; readonly method: string; readonly message: AnyNotification }
  /** Response-shaped. `message` may be malformed (both or neither of result and error): it is never answered. */
  | { readonly kind: 'response'; readonly id: RequestId; readonly message: AnyResponse }
  | { readonly kind: 'reject'; readonly answer: ErrorFrame }
  | { readonly kind: 'ignore'; readonly why: string };

/** Builds an error response with the catalogue's `code` as number and, for programs, as word. `message` must hold no text of the input. */
export function errorFrame(id: RequestId, code: ErrorCode, message: string): ErrorFrame {
  return { jsonrpc: '2.0', id, error: { code: errorCatalogue[code].rpcCode, message, data: { code } } };
}

/**
 * Classifies one parsed line. Rules of JSON-RPC 2.0 and ACP v1: no batches; an id of null is a request's id; fractional
 * ids are tolerated; anything that looks like a response is never answered, since the answer could be taken for the
 * answer to another request.
 */
export function readEnvelope(value: unknown): Envelope {
  if (Array.isArray(value)) return reject(null, 'Invalid request: ACP has no batches; send one object per line.');
  if (typeof value !== 'object' || value === null) return reject(null, 'Invalid request: expected a JSON-RPC object.');
  if (!Object.hasOwn(value, 'method')) return readWithoutMethod(value);

  const { jsonrpc, id, method } = value as { jsonrpc?: unknown; id?: unknown; method: unknown };
  const hasId = Object.hasOwn(value, 'id');
  const echo = hasId && isRequestId(id) ? id : null;
  if (jsonrpc !== '2.0') return reject(echo, 'Invalid request: expected "jsonrpc" to be "2.0".');
  if (typeof method !== 'string') return reject(echo, 'Invalid request: expected "method" to be a string.');
  if (!hasId) return { kind: 'notification', method, message: value as AnyNotification };
  if (!isRequestId(id)) return reject(null, 'Invalid request: expected "id" to be a string, a finite number or null.');
  return { kind: 'request', id, method, message: value as AnyRequest };
}

function readWithoutMethod(value: object): Envelope {
  const { id } = value as { id?: unknown };
  if (Object.hasOwn(value, 'id')) {
    if (isRequestId(id)) return { kind: 'response', id, message: value as AnyResponse };
    return { kind: 'ignore', why: 'a response whose id is of no valid type' };
  }
  if (Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error')) return { kind: 'ignore', why: 'a response without an id' };
  return reject(null, 'Invalid request: expected "method" to be a string.');
}

function isRequestId(id: unknown): id is RequestId {
  return id === null || typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));
}

function reject(id: RequestId, message: string): Envelope {
  return { kind: 'reject', answer: errorFrame(id, 'INVALID_REQUEST', message) };
}
