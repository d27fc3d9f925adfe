/**
 * V8's compiled code of this program, kept on disk between two starts: in a folder of the user's caches, one file for each build and
 * version of Node. `DSH_ACP_CODE_CACHE` names another folder, or is `off`.
 *
 * The file is code that will run, so one that somebody else could have written is not read; V8 itself looks at no more than
 * version, flags and length, so a checksum stands before it. A file that does not fit costs time, never correctness.
 */
import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { crc32 } from 'node:zlib';

export interface CodeStore {
  /** The code that an earlier start left; `undefined` where there is none that can be trusted. Never throws. */
  read(): Buffer | undefined;
  /** Takes a few milliseconds of the thread. A folder that cannot be written is no fault. Never throws. */
  write(code: Uint8Array): void;
}

/** @param build of the built files: another build has other code */
export function openCodeStore(env: NodeJS.ProcessEnv, build: string): CodeStore | undefined {
  const folder = codeFolder(env);
  if (folder === undefined) return undefined;
  const path = join(folder, `${build}-${process.version}-${process.arch}.bin`);
  return { read: () => readCode(path), write: (code) => writeCode(path, code) };
}

const largestBytes = 32 * 1024 * 1024;
const checksumBytes = 4;

/** Where the code is kept, as an absolute path; `undefined` where none is. What lies there is run: no tool may write it unasked. */
export function codeFolder(env: NodeJS.ProcessEnv): string | undefined {
  const chosen = env['DSH_ACP_CODE_CACHE'];
  if (chosen !== undefined && chosen !== '') return isAbsolute(chosen) ? chosen : undefined;
  const base = userCacheFolder(env);
  return base === undefined || !isAbsolute(base) ? undefined : join(base, 'dsh-acp', 'code');
}

/** Where this system keeps what can be made again; `undefined` for a user without a home. */
function userCacheFolder(env: NodeJS.ProcessEnv): string | undefined {
  if (process.platform === 'win32') return env['LOCALAPPDATA'];
  const given = env['XDG_CACHE_HOME'];
  if (given !== undefined && given !== '') return given;
  const home = homeFolder();
  return home === '' ? undefined : join(home, process.platform === 'darwin' ? 'Library/Caches' : '.cache');
}

function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return ''; // The user is in no table of users and HOME is not set.
  }
}

function readCode(path: string): Buffer | undefined {
  let file: number | undefined;
  try {
    // Not through a link, and not waiting for the writer of a pipe.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const { mode, uid, size } = fstatSync(file);
    const isOwn = process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
    if ((mode & constants.S_IFMT) !== constants.S_IFREG || !isOwn || size <= checksumBytes || size > largestBytes) return undefined;
    const bytes = readFileSync(file);
    const code = bytes.subarray(checksumBytes);
    return crc32(code) === bytes.readUInt32LE(0) ? code : undefined;
  } catch {
    return undefined; // The first start, or a folder that cannot be read.
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function writeCode(path: string, code: Uint8Array): void {
  const draft = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const checksum = Buffer.alloc(checksumBytes);
    checksum.writeUInt32LE(crc32(code));
    // Whole under its name, whatever other servers that start at this moment do.
    writeFileSync(draft, Buffer.concat([checksum, code]), { mode: 0o600, flag: 'wx' });
    renameSync(draft, path);
  } catch {
    removeDraft(draft);
  }
}

function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true });
  } catch {
    // Its folder is none: there is no draft.
  }
}
