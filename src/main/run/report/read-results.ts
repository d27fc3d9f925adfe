/**
 * Reads a results file: a JSON line for each attempt. A torn or damaged line is counted and passed over: one bad line must not cost the
 * report of all others.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { errorCode } from '../../../shared/log/log-faults.ts';
import type { JobResult } from '../job-result.ts';
import { scanLines } from '../line-scan.ts';
import { isStatus } from '../view/statuses.ts';

/** A line holds a patch of bounded size at most; see the runner. */
const longestLine = 64 * 1024 * 1024;

/** The place of a result in the file, for asking whether it still counts. */
export type ResultSink = (result: JobResult, line: number) => void | Promise<void>;

/**
 * Calls `onResult` for each readable result, in file order. A file that is not there holds none.
 *
 * @returns how many lines could not be read
 * @throws the system's error for a file that cannot be read; what `onResult` throws
 */
export async function readResults(path: string, onResult: ResultSink): Promise<{ readonly unreadable: number }> {
  let unreadable = 0;
  const file = await openIfThere(path);
  try {
    if (file === undefined) return { unreadable };
    for await (const { number, bytes, tooLong } of scanLines(file, longestLine)) {
      if (bytes.length === 0 && !tooLong) continue;
      const result = parseResult(bytes.toString('utf8'));
      if (result === undefined) unreadable += 1;
      else await onResult(result, number);
    }
    return { unreadable };
  } finally {
    await file?.close();
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Only what every reader of results relies on is checked. */
function parseResult(text: string): JobResult | undefined {
  let raw: Partial<JobResult> | null;
  try {
    raw = JSON.parse(text) as Partial<JobResult> | null;
  } catch {
    return undefined; // The caller counts it.
  }
  if (typeof raw !== 'object' || raw === null) return undefined;
  const { version, key, id, status, times } = raw;
  const known = version === 1 && typeof key === 'string' && typeof id === 'string' && isStatus(status);
  if (!known || typeof times !== 'object' || times === null || !Number.isFinite(times.totalMs)) return undefined;
  return { ...(raw as JobResult), text: raw.text ?? '', labels: textsOf(raw.labels) };
}

/** A results file may have been written by hand, or by a program of somebody else. */
function textsOf(labels: unknown): Record<string, string> {
  const entries = typeof labels === 'object' && labels !== null ? Object.entries(labels) : [];
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}
