/**
 * What a results file holds, read line by line: for a resume, which must know what is done and what it took, and not hold the texts.
 */
import type { FileHandle } from 'node:fs/promises';
import { configError } from '../../config/config-error.ts';
import type { JobResult } from '../job-result.ts';
import { scanLines } from '../line-scan.ts';

/** Far above what a line can have: texts, outputs and patches are bounded. */
const maxLineBytes = 64 * 1024 * 1024;

export interface FoundResult {
  readonly offset: number;
  /** Without the LF. */
  readonly length: number;
  readonly result: JobResult;
}

/**
 * Every result, in the file's order. A last line that was cut off is no result: nobody was told of it.
 *
 * @returns where the last whole line ends
 * @throws ServerError CONFIG_INVALID for a line that is no result, with its number
 */
export async function scanResults(file: FileHandle, path: string, onResult: (found: FoundResult) => void): Promise<number> {
  let end = 0;
  for await (const line of scanLines(file, maxLineBytes)) {
    if (!line.ended) break;
    end = line.offset + line.bytes.length + 1;
    const result = line.tooLong ? undefined : parseResult(line.bytes.toString('utf8'));
    if (result === undefined) {
      throw configError({
        key: '--out',
        expected: `a file of results, but line ${line.number} is none`,
        came: path,
        where: 'command line',
      });
    }
    onResult({ offset: line.offset, length: line.bytes.length, result });
  }
  return end;
}

function parseResult(text: string): JobResult | undefined {
  try {
    const value = JSON.parse(text) as Partial<JobResult> | null;
    const whole = value?.version === 1 && typeof value.key === 'string' && typeof value.status === 'string';
    return whole ? (value as JobResult) : undefined;
  } catch {
    // No JSON: the caller says which line.
    return undefined;
  }
}
