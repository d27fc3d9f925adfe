/** Whether a session's log says that a tool's body has run: what a session may have changed when its agent died before it could answer. */
import { open } from 'node:fs/promises';
import { scanLines } from '../line-scan.ts';

const maxLineBytes = 64 * 1024 * 1024;
const mark = '"type":"tool/start"';

/** In doubt, yes: a log that cannot be read says nothing. */
export async function toolsStarted(logPath: string | undefined): Promise<boolean> {
  if (logPath === undefined) return true;
  try {
    const file = await open(logPath, 'r');
    try {
      for await (const { bytes, tooLong } of scanLines(file, maxLineBytes)) if (tooLong || bytes.includes(mark)) return true;
      return false;
    } finally {
      await file.close();
    }
  } catch {
    // Gone, or of another user.
    return true;
  }
}
