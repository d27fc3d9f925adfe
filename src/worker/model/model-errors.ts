/**
 * Turns what a provider says about a failure into one of our codes, and its words into text that is safe to show.
 *
 * A key must never come out of here: providers echo keys, whole or masked, in their answers about them.
 */
import { ModelFailure, type ModelFailureCode } from './model-adapter.ts';

const maxQuoteChars = 300;
const contextWords =
  /context[ _-]?(length|window|size)|maximum context|exceed_context|too many (input )?tokens|prompt is too long|input (is )?too long|reduce the length/i;
const quotaWords = /insufficient[ _](quota|balance|credits?|funds)|exceeded your current quota|billing|payment required|out of credits/i;
const authWords = /invalid[ _]api[ _]key|authentication|unauthorized|permission[ _](denied|error)|incorrect api key/i;
const rateWords = /rate[ _-]?limit|too many requests|throttl|overloaded_error/i;
const requestWords = /invalid[ _-]?request|bad[ _]?request|unsupported|not[ _]found/i;

/** What an error body or an `error` object in a stream said. */
export interface ProviderError {
  readonly message: string;
  /** Type and code words, joined; they classify but are not shown. */
  readonly words: string;
  /** An HTTP status given as the error's code. */
  readonly status: number | undefined;
}

function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Reads the shapes that servers use: `{error: {message, type, code}}`, `{error: "text"}`, `{object: "error", message, code}`. */
export function readProviderError(value: unknown): ProviderError | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const outer = value as Record<string, unknown>;
  const inner = outer['error'] ?? (outer['object'] === 'error' || typeof outer['detail'] === 'string' ? outer : undefined);
  if (typeof inner === 'string') return { message: inner, words: '', status: undefined };
  if (typeof inner !== 'object' || inner === null) return undefined;
  const fields = inner as Record<string, unknown>;
  const code = Number(fields['code'] ?? fields['status']);
  return {
    message: wordOf(fields['message']) || wordOf(fields['detail']),
    words: `${wordOf(fields['type'])} ${wordOf(fields['code'])}`,
    status: Number.isInteger(code) && code >= 400 && code <= 599 ? code : undefined,
  };
}

function codeByWords(text: string): ModelFailureCode | undefined {
  if (quotaWords.test(text)) return 'QUOTA';
  if (contextWords.test(text)) return 'CONTEXT_WINDOW';
  return undefined;
}

/** The code for an HTTP status, refined by the words of the body. */
export function codeForStatus(status: number, text: string): ModelFailureCode {
  if (status === 401) return 'AUTH';
  if (status === 402) return 'QUOTA';
  if (status === 403) return quotaWords.test(text) ? 'QUOTA' : 'AUTH';
  if (status === 408) return 'TIMEOUT';
  if (status === 429) return quotaWords.test(text) ? 'QUOTA' : 'RATE_LIMIT';
  if (status >= 500) return contextWords.test(text) ? 'CONTEXT_WINDOW' : 'SERVER';
  return codeByWords(text) ?? 'INVALID_REQUEST';
}

/** The code for an error object inside a stream that had begun with status 200. Unknown words count as a server fault. */
export function codeForStreamError(error: ProviderError): ModelFailureCode {
  const text = `${error.words} ${error.message}`;
  if (error.status !== undefined) return codeForStatus(error.status, text);
  const known = codeByWords(text);
  if (known !== undefined) return known;
  if (rateWords.test(text)) return 'RATE_LIMIT';
  if (authWords.test(text)) return 'AUTH';
  return requestWords.test(error.words) ? 'INVALID_REQUEST' : 'SERVER';
}

/** Takes the key out of foreign text: whole, URL-encoded, its beginning, and anything already masked with asterisks. */
export function redactKey(text: string, key: string | undefined): string {
  let out = text;
  if (key !== undefined && key.length >= 4) {
    out = out.replaceAll(key, '[key]').replaceAll(encodeURIComponent(key), '[key]');
    const start = key.slice(0, 8);
    if (key.length >= 16) out = out.replace(/[^\s"'`,;:()]{8,}/g, (word) => (word.includes(start) ? '[key]' : word));
  }
  return out.replace(/\bsk-[\w*.-]{6,}/g, '[key]').replace(/[\w-]{0,64}\*{3,}[\w-]{0,64}/g, '[key]');
}

/** A provider's words, fit for a message: one line, no control characters, no key, at most 300 characters. */
export function quoteProvider(text: string, key: string | undefined): string {
  // Redact before cutting: a key cut in half would not be found.
  const line = redactKey(text.slice(0, 8192), key)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return line.length > maxQuoteChars ? `${line.slice(0, maxQuoteChars)}…` : line;
}

/**
 * `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date, in milliseconds. Not bounded: a day means a day.
 * Text that is neither is ignored.
 */
export function parseRetryAfter(headers: Readonly<Record<string, string | string[] | undefined>>, now: number): number | undefined {
  const milliseconds = headers['retry-after-ms'];
  const value = headers['retry-after'];
  const text = typeof value === 'string' ? value.trim() : '';
  let wait = Number.NaN;
  if (typeof milliseconds === 'string' && /^\d+(\.\d+)?$/.test(milliseconds)) wait = Number(milliseconds);
  else if (/^\d+(\.\d+)?$/.test(text)) wait = Number(text) * 1000;
  else if (text !== '') wait = Date.parse(text) - now;
  if (Number.isNaN(wait)) return undefined;
  return Math.min(Math.max(0, Math.ceil(wait)), Number.MAX_SAFE_INTEGER);
}

const hints: Partial<Record<ModelFailureCode, string>> = {
  AUTH: 'Check the API key.',
  QUOTA: 'Check the account of the key.',
  CONTEXT_WINDOW: 'The conversation is longer than the model takes.',
};

/** The failure for an answer that was not a success. `body` is the text of the answer, possibly cut. */
export function failureForStatus(
  answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
    readonly body: string;
  },
  key: string | undefined,
  now: number,
): ModelFailure {
  let parsed: ProviderError | undefined;
  try {
    parsed = readProviderError(JSON.parse(answer.body));
  } catch {
    // Not JSON: a proxy's page, for example. Its text still helps.
  }
  const text = parsed === undefined ? answer.body : `${parsed.words} ${parsed.message}`;
  const code = codeForStatus(answer.status, text);
  const quote = quoteProvider(parsed?.message ?? answer.body, key);
  const hint = answer.status === 404 ? 'Check base_url and the model name.' : hints[code];
  const retryAfterMs = parseRetryAfter(answer.headers, now);
  return new ModelFailure(
    code,
    `The model server answered HTTP ${answer.status}${quote === '' ? '.' : `: ${quote}`}${hint === undefined ? '' : ` ${hint}`}`,
    { status: answer.status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
  );
}
