/** Reads a file of settings, bounded, and parses TOML. The parser is loaded only when there is a file: most starts have none. */
import { readFile, stat } from 'node:fs/promises';
import { configError } from './config-error.ts';

const maxFileBytes = 1024 * 1024;

export interface FilePlace {
  /** The setting that names the file. */
  readonly key: string;
  /** The flag, the variable or the place in a file. */
  readonly where: string;
  /** Whether the file may be missing. */
  readonly isOptional: boolean;
}

/**
 * The text of a regular file; `undefined` when an optional one is not there.
 *
 * @throws ServerError CONFIG_INVALID when it is missing, too large, or cannot be read
 */
export async function readTextFile(
  path: string,
  { key, where, isOptional }: FilePlace,
): Promise<{ text: string; mode: number } | undefined> {
  try {
    const info = await stat(path);
    if (!info.isFile()) throw configError({ key, expected: `a file at ${path}, which is something else`, where });
    if (info.size > maxFileBytes)
      throw configError({ key, expected: `${path} to be at most ${maxFileBytes} bytes`, came: info.size, where });
    return { text: await readFile(path, 'utf8'), mode: info.mode };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'CONFIG_INVALID') throw error;
    if (isOptional && (code === 'ENOENT' || code === 'ENOTDIR')) return undefined;
    throw configError({ key, expected: `a readable file at ${path}, but ${reason(error)}`, where });
  }
}

function reason(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'it may not be read by this user';
  return code === '' ? 'it could not be read' : `it could not be read (${code})`;
}

/** @throws ServerError CONFIG_INVALID with line and column */
export async function parseToml(text: string, { path, key }: { path: string; key: string }): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The parser's message quotes the file, which may hold a key: its first line alone names the fault.
    const fault = error.message.split('\n')[0]?.replace(/^Invalid TOML document:\s*/, '') ?? 'not TOML';
    throw configError({ key, expected: `TOML, but ${fault}`, where: `${path}:${error.line}:${error.column}` });
  }
}
