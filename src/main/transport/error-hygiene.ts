/**
 * The last look at an error before a client sees it.
 *
 * The SDK puts whole validation trees, whole input messages and the text of unexpected exceptions into error responses.
 * What leaves here is short, and never holds a parameter value, a stack, or the text of an exception nobody mapped.
 */
import type { ErrorResponse } from '@agentclientprotocol/sdk';
import { type ErrorCode, errorCatalogue } from '../../shared/errors.ts';

/** What goes to the client, and what only stderr may know. */
export interface CleanError {
  readonly error: ErrorResponse;
  readonly debug?: string;
}

const MAX_MESSAGE = 500;
const MAX_DETAILS = 500;
const MAX_METHOD = 120;
const MAX_SEGMENT = 40;
const MAX_REASONS = 8;
const MAX_DEPTH = 32;
const STACK_LINE = /\n[ \t]+at .*/s;

/**
 * Cleans an error response. Validation trees become `{ details: "params.cwd: expected string, received undefined" }`;
 * an unmapped exception loses its text (it comes back as `debug`); echoes of the input are dropped.
 */
export function cleanError(error: ErrorResponse): CleanError {
  const { code } = error;
  const message = clip(error.message.replace(STACK_LINE, ''), MAX_MESSAGE);
  if (code === errorCatalogue.INVALID_PARAMS.rpcCode && isZodTree(error.data)) {
    const details = describeZodTree(error.data);
    return { error: { code, message: clip(`${message}: ${details}`, MAX_DETAILS), data: { code: 'INVALID_PARAMS', details } } };
  }
  if (code === errorCatalogue.METHOD_NOT_FOUND.rpcCode) return { error: cleanMethodNotFound(error) };
  // The SDK's own texts, by which an error that our handlers did not map is known.
  if (code === errorCatalogue.INTERNAL.rpcCode && message === 'Internal error') {
    const fault = 'The server met an unexpected fault.';
    return { error: { code, message: fault, data: wordOf(code, fault) }, debug: clip(safeJson(error.data), 2000) };
  }
  const word = wordOf(code, message);
  if (code === errorCatalogue.INVALID_REQUEST.rpcCode && message === 'Invalid request') return { error: { code, message, data: word } };
  const data = stripStacks(error.data, 0) ?? word;
  return {
    error:
      data === undefined ? { code, message } : { code, message, data: isPlain(data) && !('code' in data) ? { ...word, ...data } : data },
  };
}

/** What the SDK's own errors can be, by their number. */
const sdkErrors = ['PARSE_ERROR', 'INVALID_REQUEST', 'METHOD_NOT_FOUND', 'INVALID_PARAMS', 'INTERNAL', 'REQUEST_CANCELLED'] as const;

/**
 * The catalogue's word for errors of the SDK, which knows numbers alone, and the sentence that several clients show in place of
 * the message. An error of ours has its own in `data`.
 */
function wordOf(code: number, message: string): { readonly code: ErrorCode; readonly details: string } | undefined {
  const word = sdkErrors.find((one) => errorCatalogue[one].rpcCode === code);
  return word === undefined ? undefined : { code: word, details: `${sentence(message)} ${errorCatalogue[word].hint}` };
}

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

function cleanMethodNotFound(error: ErrorResponse): ErrorResponse {
  const { code, data } = error;
  const method = isObject(data) && typeof data['method'] === 'string' ? clip(data['method'], MAX_METHOD) : undefined;
  const message = method === undefined ? clip(error.message, MAX_MESSAGE) : `Method not found: ${method}`;
  return { code, message, data: { ...wordOf(code, message), ...(method === undefined ? {} : { method }) } };
}

/** Zod's `format()`: nested objects by field, the reasons in `_errors`. */
function isZodTree(data: unknown): data is Record<string, unknown> {
  return isObject(data) && Array.isArray(data['_errors']);
}

interface Reason {
  readonly path: string;
  readonly text: string;
  /** A union reports every variant: a value of the wrong type says more than a variant's tag, a missing field least. */
  readonly rank: number;
}

function describeZodTree(tree: Record<string, unknown>): string {
  const reasons: Reason[] = [];
  collectReasons(tree, 'params', 0, reasons);
  reasons.sort((a, b) => a.rank - b.rank);
  const shown = reasons.slice(0, MAX_REASONS).map(({ path, text }) => `${path}: ${text}`);
  return clip(shown.length === 0 ? 'params: not valid' : shown.join('; '), MAX_DETAILS);
}

function collectReasons(node: Record<string, unknown>, path: string, depth: number, into: Reason[]): void {
  if (depth > MAX_DEPTH || into.length > 64) return;
  const own = ownReasons(node['_errors']);
  if (own !== undefined) into.push({ path, text: own, rank: own.endsWith('received undefined') ? 2 : own.includes('received') ? 0 : 1 });
  for (const [key, child] of Object.entries(node)) {
    if (key !== '_errors' && isObject(child)) collectReasons(child, `${path}.${clip(key, MAX_SEGMENT)}`, depth + 1, into);
  }
}

function ownReasons(errors: unknown): string | undefined {
  if (!Array.isArray(errors)) return undefined;
  const texts = new Set<string>();
  for (const error of errors) if (typeof error === 'string') texts.add(clip(error.replace(/^Invalid input: /, ''), 160));
  if (texts.size === 0) return undefined;
  const [first = '', ...others] = texts;
  // The same key of several variants of a union: `expected "text", "image"`.
  const alike = others.map((text) => text.replace(/^expected /, ''));
  return [first, ...alike].join(', ');
}

/** Copies plain data without `stack` fields and without stack text in strings. */
function stripStacks(data: unknown, depth: number): unknown {
  if (typeof data === 'string') return data.replace(STACK_LINE, '');
  if (!isObject(data) || depth > MAX_DEPTH) return data;
  if (Array.isArray(data)) return data.map((item) => stripStacks(item, depth + 1));
  const entries = Object.entries(data).filter(([key]) => key !== 'stack');
  // What a model said is not ours to cut, whatever it looks like.
  return Object.fromEntries(entries.map(([key, value]) => [key, key === 'text' ? value : stripStacks(value, depth + 1)]));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function clip(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function safeJson(data: unknown): string {
  try {
    return JSON.stringify(data) ?? '';
  } catch {
    // Only for stderr: a cycle is as good as no detail.
    return '';
  }
}
