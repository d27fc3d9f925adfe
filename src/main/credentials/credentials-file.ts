/**
 * The file of stored keys: `credentials.json` beside the user's configuration, readable by that user alone.
 *
 * It says for each model server, by its base URL, the key or that the keyring of the desktop has it. Read again each time, since
 * another process may have changed it; a file that others could read or write is not used.
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from '../../shared/log/log-faults.ts';

/** Where the key of one server is. */
export type StoredKey = { readonly key: string } | { readonly keyring: true };

/** By base URL, without a slash at its end. */
export type StoredKeys = ReadonlyMap<string, StoredKey>;

export type CredentialsRead =
  | { readonly kind: 'read'; readonly keys: StoredKeys /** Changes when the file does. */; readonly stamp: string }
  /** In words for people; holds no key. */
  | { readonly kind: 'unusable'; readonly reason: string };

export const keyPattern = /^[\x21-\x7e]{1,4096}$/;

const version = 1;
const mostBytes = 256 * 1024;
const mostServers = 64;
const privateFile = 0o600;
const privateDir = 0o700;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const writeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const noKeys: CredentialsRead = { kind: 'read', keys: new Map(), stamp: 'none' };

/** Never throws. A file that is not there holds no keys. Synchronous: a few system calls on a small file. */
export function readCredentials(path: string): CredentialsRead {
  let fd: number | undefined;
  try {
    fd = openSync(path, readFlags);
    const { mode, uid, size, ino, mtimeNs } = fstatSync(fd, { bigint: true });
    if ((mode & BigInt(constants.S_IFMT)) !== BigInt(constants.S_IFREG)) return unusable(path, 'it is no regular file');
    if (process.getuid !== undefined && uid !== BigInt(process.getuid())) return unusable(path, 'it belongs to another user');
    if (process.platform !== 'win32' && (mode & 0o077n) !== 0n) return unusable(path, `other users may read it; run: chmod 600 ${path}`);
    if (size > BigInt(mostBytes)) return unusable(path, 'it is too large');
    const bytes = Buffer.allocUnsafe(Number(size));
    const keys = parseKeys(bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0)));
    if (keys === undefined) return unusable(path, 'it is not what dsh-acp login writes');
    return { kind: 'read', keys, stamp: `${ino}/${mtimeNs}/${size}` };
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return noKeys;
    return unusable(path, code === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${code})`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Replaces the file as a whole: whoever reads meanwhile finds the old one or the new. @throws the system's error */
export function writeCredentials(path: string, keys: StoredKeys): void {
  const directory = dirname(path);
  // mkdir's mode is cut by the umask: chmod states it outright. A directory that exists keeps its own.
  if (mkdirSync(directory, { recursive: true, mode: privateDir }) !== undefined) chmodSync(directory, privateDir);
  const unfinished = `${path}.${randomUUID()}`;
  const bytes = Buffer.from(`${JSON.stringify({ version, keys: Object.fromEntries(keys) }, undefined, 2)}\n`);
  const fd = openSync(unfinished, writeFlags, privateFile);
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written, bytes.length - written);
    fsyncSync(fd);
    renameSync(unfinished, path);
  } catch (error) {
    unlinkSync(unfinished);
    throw error;
  } finally {
    closeSync(fd);
  }
}

function unusable(path: string, why: string): CredentialsRead {
  return { kind: 'unusable', reason: `${path} is not used: ${why}` };
}

function parseKeys(text: string): StoredKeys | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined; // The parser's message would quote the file.
  }
  if (!isRecord(parsed) || parsed['version'] !== version || !isRecord(parsed['keys'])) return undefined;
  const entries = Object.entries(parsed['keys']);
  const keys = new Map<string, StoredKey>();
  for (const [baseUrl, value] of entries) {
    const stored = parseKey(value);
    if (stored === undefined) return undefined;
    keys.set(baseUrl, stored);
  }
  return entries.length > mostServers ? undefined : keys;
}

function parseKey(value: unknown): StoredKey | undefined {
  if (!isRecord(value)) return undefined;
  if (value['keyring'] === true) return { keyring: true };
  const key = value['key'];
  return typeof key === 'string' && keyPattern.test(key) ? { key } : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
