/**
 * The check that every directory of a workspace passes before a session is made or opened.
 *
 * A file system that does not answer must not hold up `session/new`, nor the thread pool that every log's barrier needs: a
 * check has a deadline, and few run at once, since one that hangs keeps its thread of the pool.
 */
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import PQueue from 'p-queue';
import { ServerError } from '../../shared/errors.ts';

const deadlineMs = 5_000;
const checks = new PQueue({ concurrency: 2 });

export interface DirectoryCheck {
  /** The canonical path of an absolute one. @throws the system's error; ServerError for what is no directory */
  readonly look?: (path: string) => Promise<string>;
  readonly deadlineMs?: number;
}

/**
 * The canonical path of a directory that this process can enter.
 *
 * @throws ServerError CWD_INVALID for a relative or missing path, a file, a directory without search permission, one whose
 *   file system does not answer within five seconds
 */
export async function canonicalDirectory(path: string, check: DirectoryCheck = {}): Promise<string> {
  const found = await lookAtDirectory(path, check);
  if (found.ok) return found.path;
  throw new ServerError('CWD_INVALID', `cwd ${found.fault}`, { data: { field: 'cwd' } });
}

/** `fault` goes on from the name of the field: "does not exist." */
export type FoundDirectory = { readonly ok: true; readonly path: string } | { readonly ok: false; readonly fault: string };

/** Never rejects, and always answers within the deadline. */
export async function lookAtDirectory(path: string, check: DirectoryCheck = {}): Promise<FoundDirectory> {
  if (!isAbsolute(path) || path.includes('\0')) return { ok: false, fault: 'must be an absolute path.' };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<FoundDirectory>((resolve) => {
    const fault = 'does not answer: its file system may be out of reach.';
    timer = setTimeout(() => resolve({ ok: false, fault }), check.deadlineMs ?? deadlineMs);
  });
  try {
    return await Promise.race([lookOnce(path, check.look ?? enterableDirectory), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Looks that have not ended, by path: one that hangs is joined by whoever asks again, and takes no further thread. */
const running = new Map<string, Promise<FoundDirectory>>();

async function lookOnce(path: string, look: (path: string) => Promise<string>): Promise<FoundDirectory> {
  const joined = running.get(path);
  if (joined !== undefined) return await joined;
  const found = checks
    .add(() => look(path))
    .then(
      (canonical): FoundDirectory => ({ ok: true, path: canonical }),
      (error: unknown): FoundDirectory => ({ ok: false, fault: faultOf(error) }),
    )
    .finally(() => running.delete(path));
  running.set(path, found);
  return await found;
}

class NoDirectory extends Error {}

async function enterableDirectory(path: string): Promise<string> {
  const canonical = await realpath(path);
  if (!(await stat(canonical)).isDirectory()) throw new NoDirectory();
  await access(canonical, constants.X_OK);
  return canonical;
}

function faultOf(error: unknown): string {
  if (error instanceof NoDirectory) return 'must be a directory, and it is not one.';
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  return code === 'ENOENT' ? 'does not exist.' : `cannot be entered (${code}).`;
}
