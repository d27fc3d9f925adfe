/**
 * The edge at which our errors become JSON-RPC errors: code and words from the catalogue, never a stack, a path of the
 * server, or a parameter value. The SDK would put the text of any other thrown error on the wire.
 */
import { inspect } from 'node:util';
import { RequestError } from '@agentclientprotocol/sdk';
import { errorCatalogue, ServerError } from '../../shared/errors.ts';
import type { Diagnostics } from '../diagnostics.ts';

/** `data.details` is what several clients show; `data.code` is for programs. */
export function toRequestError(error: unknown, diagnostics: Diagnostics): RequestError {
  if (error instanceof RequestError) return error;
  const known = error instanceof ServerError ? error : new ServerError('INTERNAL', 'The server met an unexpected fault.', { cause: error });
  if (known.code === 'INTERNAL' || known.cause !== undefined) diagnostics.log('debug', describeCause(known));
  const { rpcCode, hint } = errorCatalogue[known.code];
  return new RequestError(rpcCode, known.message, { ...known.data, code: known.code, details: withHint(known, hint) });
}

/** What went wrong and what to do about it, in sentences; a message that says the latter itself is not told twice. */
function withHint({ code, message }: ServerError, hint: string): string {
  if (code === 'AUTH_REQUIRED' && message.includes('dsh-acp login')) return message;
  return /[.!?…)]$/.test(message) ? `${message} ${hint}` : `${message}. ${hint}`;
}

/** Wraps a handler so that whatever it throws leaves as a catalogue error. */
export function answering<Context, Result>(
  diagnostics: Diagnostics,
  handle: (context: Context) => Promise<Result> | Result,
): (context: Context) => Promise<Result> {
  return async (context) => {
    try {
      return await handle(context);
    } catch (error) {
      throw toRequestError(error, diagnostics);
    }
  };
}

function describeCause(error: ServerError): string {
  const cause = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : inspect(error.cause);
  return `${error.code}: ${error.message} ${cause}`;
}
