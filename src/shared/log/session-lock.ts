/**
 * One writer per session log, across processes: a lock file that names its owner.
 *
 * The file appears whole (written aside, then linked), so nobody reads half of it. A stale lock is replaced, never removed
 * first, so there is no moment without a lock; and only who holds the claim (a second name of the stale file itself) may
 * replace it, so two takers cannot both win. Who was replaced all the same finds out by {@link SessionLock.stillOwner}.
 */
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ServerError } from '../errors.ts';
import { errorCode, logWriteFailed } from './log-faults.ts';
import { identifySelf, isRunning, type ProcessIdentity } from '../process-identity.ts';

/** What a lock file says. */
export interface LockOwner extends ProcessIdentity {
  /** Names the server process among all that ever ran. */
  readonly serverNonce: string;
  readonly threadId: number;
  /** Grows by one with each takeover. */
  readonly epoch: number;
}

export interface LockRequest {
  readonly lockPath: string;
  readonly serverNonce: string;
  readonly threadId: number;
  /** Whoever asks for the lock has lost interest, and may be followed by another thread of its own server already. */
  readonly isGivenUp?: () => boolean;
}

/** How long an acquirer waits for others that are taking over the same lock; a takeover lasts microseconds. */
const patienceMs = 2000;
/** A claim this old was left behind by a taker that died. */
const claimLimitMs = 1000;
const lockFileLimitBytes = 4096;

interface FileIdentity {
  readonly ino: bigint;
  readonly mtimeNs: bigint;
}

interface Holder {
  readonly file: FileIdentity;
  /** undefined when the file is unreadable, as after a power cut: nobody alive leaves one so. */
  readonly owner: LockOwner | undefined;
}

export class SessionLock {
  readonly epoch: number;
  readonly #path: string;
  readonly #file: FileIdentity;

  private constructor(path: string, file: FileIdentity, epoch: number) {
    this.#path = path;
    this.#file = file;
    this.epoch = epoch;
  }

  /**
   * Takes the lock: a free one, a stale one (its process is gone, or its machine was restarted), or one of this server's
   * own, left by a thread that died; the epoch then grows.
   *
   * @throws ServerError SESSION_LOCKED while a live process of another server holds it; LOG_WRITE_FAILED when the disk refuses
   */
  static async acquire(request: LockRequest): Promise<SessionLock> {
    const deadline = performance.now() + patienceMs;
    do {
      const lock = tryAcquire(request);
      if (lock !== undefined) {
        return new SessionLock(request.lockPath, lock.file, lock.epoch);
      }
      await delay(1 + Math.random() * 4);
    } while (performance.now() < deadline);
    throw locked(undefined);
  }

  /** Whether the lock file is still the one that was taken. One `stat`, some 3 µs. */
  stillOwner(): boolean {
    const stat = lstatSync(this.#path, { bigint: true, throwIfNoEntry: false });
    // Inode numbers are used again at once, so the time belongs to the identity.
    return stat !== undefined && isSameFile(stat, this.#file);
  }

  /** Removes the lock file if it is still ours. Never throws: a lock left behind is stale once the process ends. */
  release(): void {
    try {
      if (this.stillOwner()) {
        unlinkSync(this.#path);
      }
    } catch {
      // The directory is gone or read-only; see above.
    }
  }
}

/** Whether a live process holds the lock. Read-only; a lock that cannot be read counts as held. */
export function isLockHeld(lockPath: string): boolean {
  try {
    const holder = readHolder(lockPath);
    return holder?.owner !== undefined && isRunning(holder.owner);
  } catch {
    // Whoever only looks must not take a session for abandoned on a guess.
    return true;
  }
}

/** One attempt; undefined when another acquirer got in between and the attempt must be made again. */
function tryAcquire(request: LockRequest): { file: FileIdentity; epoch: number } | undefined {
  const { lockPath, serverNonce } = request;
  try {
    if (request.isGivenUp?.() === true) throw locked(undefined);
    const holder = readHolder(lockPath);
    if (holder === undefined) {
      return publish(request, 1, (draft) => linkFree(draft, lockPath));
    }
    const { owner } = holder;
    if (owner !== undefined && owner.serverNonce !== serverNonce && isRunning(owner)) {
      throw locked(owner);
    }
    return publish(request, (owner?.epoch ?? 0) + 1, (draft) => replaceStale(draft, lockPath, holder));
  } catch (error) {
    if (error instanceof ServerError) {
      throw error;
    }
    throw logWriteFailed(lockPath, error);
  }
}

/**
 * Writes the lock's text aside and puts it in place with `place`, which says whether it did. The identity survives a link or
 * a rename.
 */
function publish(
  request: LockRequest,
  epoch: number,
  place: (draft: string) => boolean,
): { file: FileIdentity; epoch: number } | undefined {
  const { serverNonce, threadId, lockPath } = request;
  const owner: LockOwner = { ...identifySelf(), serverNonce, threadId, epoch };
  // No other thread of any server has this name, and this one writes one draft at a time.
  const draft = `${lockPath}.${serverNonce}-${process.pid}-${threadId}.tmp`;
  try {
    writeFileSync(draft, `${JSON.stringify(owner)}\n`, { flag: 'wx', mode: 0o600 });
    const file = lstatSync(draft, { bigint: true });
    return place(draft) ? { file, epoch } : undefined;
  } finally {
    removeIfThere(draft);
  }
}

function linkFree(draft: string, lockPath: string): boolean {
  try {
    linkSync(draft, lockPath);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') {
      return false;
    }
    throw error;
  }
}

/** Replaces exactly the lock that was judged, as its only taker. The claim is held for three system calls. */
function replaceStale(draft: string, lockPath: string, holder: Holder): boolean {
  const claim = `${lockPath}.claim`;
  if (!linkClaim(lockPath, claim)) {
    return false;
  }
  try {
    if (!isSameFile(lstatSync(claim, { bigint: true }), holder.file)) {
      return false;
    }
    renameSync(draft, lockPath);
    return true;
  } finally {
    removeIfThere(claim);
  }
}

function linkClaim(lockPath: string, claim: string): boolean {
  try {
    linkSync(lockPath, claim);
    return true;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'EEXIST') {
      removeOldClaim(claim);
    } else if (code !== 'ENOENT') {
      // ENOENT: the lock was released meanwhile.
      throw error;
    }
    return false;
  }
}

function removeOldClaim(claim: string): void {
  const stat = lstatSync(claim, { throwIfNoEntry: false });
  // Linking sets the change time.
  if (stat !== undefined && Date.now() - stat.ctimeMs > claimLimitMs) {
    removeIfThere(claim);
  }
}

function readHolder(lockPath: string): Holder | undefined {
  let fd: number;
  try {
    fd = openSync(lockPath, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return undefined;
    }
    throw error;
  }
  try {
    const file = fstatSync(fd, { bigint: true });
    return { file, owner: file.size > lockFileLimitBytes ? undefined : parseOwner(readFileSync(fd, 'utf8')) };
  } finally {
    closeSync(fd);
  }
}

/** In place of `rmSync`, whose first call costs a thread the loading of what removes whole trees. */
function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

function parseOwner(text: string): LockOwner | undefined {
  try {
    const { pid, processStart, bootId, serverNonce, threadId, epoch } = JSON.parse(text) as Partial<LockOwner>;
    if (typeof pid !== 'number' || typeof bootId !== 'string' || typeof serverNonce !== 'string' || !Number.isSafeInteger(epoch)) {
      return undefined;
    }
    return { pid, processStart, bootId, serverNonce, threadId: threadId ?? 0, epoch: epoch ?? 0 };
  } catch {
    // Not JSON: a file that a power cut emptied.
    return undefined;
  }
}

function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.ino === b.ino && a.mtimeNs === b.mtimeNs;
}

function locked(owner: LockOwner | undefined): ServerError {
  const who = owner === undefined ? 'another server' : `another server (process ${owner.pid})`;
  return new ServerError('SESSION_LOCKED', `The session is open in ${who}.`, owner === undefined ? {} : { data: { pid: owner.pid } });
}
