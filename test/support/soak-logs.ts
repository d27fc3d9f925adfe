/** Reads every log that a soak has left. */
import { closeSync, existsSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { readLog } from '../../src/worker/log/log-reader.ts';

export interface LeftLogs {
  readonly logs: number;
  /** By session: why its log cannot be read whole. */
  readonly broken: ReadonlyMap<string, string>;
  /** Files that no session should leave: locks and drafts. */
  readonly remains: readonly string[];
}

export async function readLeftLogs(stateDir: string): Promise<LeftLogs> {
  const dir = sessionsDir(stateDir);
  const files = existsSync(dir) ? readdirSync(dir) : [];
  const logs = files.filter((one) => one.endsWith('.jsonl'));
  const broken = new Map<string, string>();
  for (const file of logs) {
    await readWhole(join(dir, file)).catch((error: unknown) => broken.set(file.slice(0, -'.jsonl'.length), String(error)));
  }
  return { logs: logs.length, broken, remains: files.filter((one) => !one.endsWith('.jsonl') && !one.endsWith('.d')) };
}

/** @throws ServerError LOG_CORRUPT */
async function readWhole(path: string): Promise<void> {
  const fd = openSync(path, 'r');
  try {
    await readLog({ fd, path, size: fstatSync(fd).size }, () => undefined);
  } finally {
    closeSync(fd);
  }
}
