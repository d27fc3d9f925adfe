/**
 * The two faults of a log file, worded once.
 *
 * Messages name the file by its last part only: where the state directory lies is nobody's business on the wire.
 */
import { basename } from 'node:path';
import { ServerError } from '../errors.ts';

/** LOG_CORRUPT that names the file and, where known, the line (the header is line 1). */
export function logCorrupt(path: string, line: number | undefined, found: string): ServerError {
  const file = basename(path);
  const place = line === undefined ? file : `${file}, line ${line}`;
  return new ServerError('LOG_CORRUPT', `The session log cannot be read: ${place}: ${found}.`, {
    data: line === undefined ? { file } : { file, line },
  });
}

/** LOG_WRITE_FAILED from a refusal of the operating system, or from a sentence of ours. */
export function logWriteFailed(path: string, cause: unknown): ServerError {
  const file = basename(path);
  const why = typeof cause === 'string' ? cause : (errorCode(cause) ?? 'unknown fault');
  return new ServerError('LOG_WRITE_FAILED', `The session log could not be written: ${file}: ${why}.`, {
    data: { file, reason: why },
    ...(typeof cause === 'string' ? {} : { cause }),
  });
}

/** The `code` of a system error, for example `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) {
    return undefined;
  }
  return typeof error.code === 'string' ? error.code : undefined;
}
