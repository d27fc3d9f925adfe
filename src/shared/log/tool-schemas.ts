/**
 * The schemas of the tools that a session's model was offered. A log names them by hash; the text stands once for all sessions, in
 * `tools/<hash>.json` beside `sessions/`. An aid for whoever reads logs later: nothing of a session depends on it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface StoredToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: object;
}

interface KeptTools {
  schemas(): readonly StoredToolSchema[];
  hash(): string;
}

const hashPattern = /^[0-9a-f]{16}$/;
/** What this process has written or found. */
const kept = new Set<string>();

function pathFor(logPath: string, hash: string): string | undefined {
  return hashPattern.test(hash) ? join(dirname(dirname(logPath)), 'tools', `${hash}.json`) : undefined;
}

/**
 * Writes the schemas unless they are there, or the tools have become others meanwhile. Never throws: a disk that refuses is noticed by
 * the log itself.
 */
export function keepToolSchemas(logPath: string, hash: string, tools: KeptTools): void {
  const path = pathFor(logPath, hash);
  if (path === undefined || kept.has(path) || tools.hash() !== hash) return;
  kept.add(path);
  try {
    if (existsSync(path)) return;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // Others may write the same at the same moment: each puts a whole file in place.
    const draft = `${path}.${process.pid}-${performance.now()}`;
    writeFileSync(draft, JSON.stringify(tools.schemas()), { mode: 0o600, flag: 'wx' });
    renameSync(draft, path);
  } catch {
    // An aid, see above.
  }
}

/** The schemas behind the hash of a log's `request/header`; `undefined` when they are not there or cannot be read. */
export function readToolSchemas(logPath: string, hash: string): readonly StoredToolSchema[] | undefined {
  const path = pathFor(logPath, hash);
  if (path === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Array.isArray(value) && value.every(isToolSchema) ? value : undefined;
  } catch {
    return undefined; // Not there: the log is older, or was moved without them.
  }
}

function isToolSchema(value: unknown): value is StoredToolSchema {
  if (typeof value !== 'object' || value === null) return false;
  const { name, description, parameters } = value as Partial<Record<keyof StoredToolSchema, unknown>>;
  return typeof name === 'string' && typeof description === 'string' && typeof parameters === 'object' && parameters !== null;
}
