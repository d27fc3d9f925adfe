/**
 * What the operating system says about process groups: whether one still lives, and who carries a mark.
 *
 * Stands below the broker, which owns children, and below main, which ends them should the broker thread die. Reads
 * `/proc` where there is one; elsewhere a group lives as long as it can be signalled. Never waits on a child itself.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Sends a signal to a whole group; `0` only asks. False when no such group exists. */
export function signalGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pgid, signal);
    return true;
  } catch (error) {
    // EPERM means that members live which are not ours to signal: only ESRCH is a proof.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Sends a signal to the members of a group whose leader holds a sandbox, but not to the leader: it would end, and all others be killed.
 * While there is none but the leader and the first process of the sandbox, which takes no signals, it goes to the leader after all.
 */
export function signalGroupInside(pgid: number, signal: NodeJS.Signals): void {
  const members = processIds().filter((pid) => pid !== pgid && isMember(pid, pgid));
  if (members.length === 0) signalProcess(pgid, signal);
  for (const pid of members) signalProcess(pid, signal);
}

/** Whether the process is of the group, and no direct child of its leader. */
function isMember(pid: number, pgid: number): boolean {
  const stat = readProcFile(pid, 'stat');
  const [, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
  return Number(group) === pgid && Number(parent) !== pgid;
}

/** Sends a signal to one process; a process that is gone is no fault. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone already, or not ours to signal: nothing that could be done about either.
  }
}

/**
 * Fulfils with true once the group has no member left that could run (zombies count as gone), with false when that has
 * not come within `limitMs`. Ask only for groups whose leader has been spawned by this process.
 *
 * @param scans for tests: what finds the living groups
 */
export async function waitGroupGone(pgid: number, limitMs: number, scans: GroupScans = processScans): Promise<boolean> {
  const begin = performance.now();
  let seen = begin;
  let idleVerdicts = 0;
  for (let pause = firstPauseMs; ; pause = pause < pollMs ? pause * 2 : Math.min(pause * 1.1, slowestPollMs)) {
    if (!signalGroup(pgid, 0)) return true;
    const scan = scans.latest();
    // A scan from before the question knows nothing of a group that is younger, and one seen twice is one verdict.
    if (scan !== undefined && scan.begin >= seen) {
      idleVerdicts = scan.groups.has(pgid) ? 0 : idleVerdicts + 1;
      seen = scan.end;
    }
    // Two scans, since one alone can miss a process that was born behind its back.
    if (idleVerdicts === 2) return true;
    if (performance.now() >= begin + limitMs) return false;
    await delay(pause);
  }
}

/** Most groups are gone within moments of their leader. */
const firstPauseMs = 1.5;
const pollMs = 12;
const slowestPollMs = 150;
const scanKeptMs = 3;

interface GroupScan {
  /** Times of `performance.now()`. */
  readonly begin: number;
  readonly end: number;
  /** Groups with a member that is no zombie. */
  readonly groups: ReadonlySet<number>;
}

/** One scan serves all who ask within a few milliseconds. */
export class GroupScans {
  readonly #read: () => ReadonlySet<number> | undefined;
  #last: GroupScan | undefined;

  /** @param read the groups that live now; undefined where the system does not tell */
  constructor(read: () => ReadonlySet<number> | undefined) {
    this.#read = read;
  }

  /** The last scan, or a new one when that is too old. On a machine with very many processes scans must not eat the thread. */
  latest(): GroupScan | undefined {
    const begin = performance.now();
    const last = this.#last;
    if (last !== undefined && begin < last.end + Math.max(scanKeptMs, (last.end - last.begin) * 4)) return last;
    const groups = this.#read();
    if (groups === undefined) return undefined;
    this.#last = { begin, end: performance.now(), groups };
    return this.#last;
  }
}

const processScans = new GroupScans(readLiveGroups);

function readLiveGroups(): ReadonlySet<number> | undefined {
  const groups = new Set<number>();
  const pids = processIds();
  if (pids.length === 0) return undefined;
  for (const pid of pids) {
    const stat = readProcFile(pid, 'stat');
    // The name before ')' may itself hold blanks and brackets; state, parent and group follow the last one.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    if (state !== undefined && group !== undefined && state !== 'Z' && state !== 'X') groups.add(Number(group));
  }
  return groups;
}

/** The processes whose environment held `mark` when they were started, with their whole environment text. */
export function markedProcesses(mark: string): { readonly pid: number; readonly environment: string }[] {
  const found: { readonly pid: number; readonly environment: string }[] = [];
  for (const pid of processIds()) {
    if (pid === process.pid) continue;
    const environment = readProcFile(pid, 'environ');
    if (environment.includes(mark)) found.push({ pid, environment });
  }
  return found;
}

function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    // No /proc on this system.
    return [];
  }
}

function readProcFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    // Ended meanwhile, or of another user.
    return '';
  }
}
