/**
 * Tells a live process from a dead one, also when its number was given to another process since, or the machine was
 * started anew. Reads /proc where there is one; elsewhere knows less and then takes a process for alive.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

export interface ProcessIdentity {
  readonly pid: number;
  /** When the process began, in clock ticks since boot: field 22 of `/proc/<pid>/stat`. */
  readonly processStart: string | undefined;
  readonly bootId: string;
}

const bootTolerance = 300;
let thisBoot: string | undefined;
let self: ProcessIdentity | undefined;

/** Reads `/proc` once in each thread: a process stays the same. */
export function identifySelf(): ProcessIdentity {
  self ??= { pid: process.pid, processStart: readStat(process.pid)?.start, bootId: currentBootId() };
  return self;
}

/** Names the running of this machine since it was started. */
export function currentBootId(): string {
  thisBoot ??= readText('/proc/sys/kernel/random/boot_id')?.trim() ?? `boot:${Math.round(Date.now() / 1000 - uptime())}`;
  return thisBoot;
}

/** Whether the process that wrote this identity still runs. In doubt, yes. */
export function isRunning(identity: ProcessIdentity): boolean {
  // 0 and negative numbers would address process groups.
  if (!Number.isSafeInteger(identity.pid) || identity.pid <= 0 || !isSameBoot(identity.bootId, currentBootId()) || !exists(identity.pid)) {
    return false;
  }
  const stat = readStat(identity.pid);
  if (stat === undefined) {
    return true;
  }
  // A zombie has an entry until its parent looks, but it runs no code.
  const isDead = stat.state === 'Z' || stat.state === 'X';
  return !isDead && (identity.processStart === undefined || identity.processStart === stat.start);
}

/** Boot ids are equal, or are start times of a machine without boot ids, which drift with the clock. */
export function isSameBoot(a: string, b: string): boolean {
  if (a === b) {
    return true;
  }
  const [first, second] = [a, b].map((id) => (id.startsWith('boot:') ? Number(id.slice(5)) : Number.NaN));
  return Math.abs((first ?? Number.NaN) - (second ?? Number.NaN)) <= bootTolerance;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to someone else.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

function readStat(pid: number): { state: string; start: string } | undefined {
  const text = readText(`/proc/${pid}/stat`);
  // The command's name is in parentheses and may hold anything, so count from the last one: state is field 3.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, start] = [fields?.[0], fields?.[19]];
  return state === undefined || start === undefined ? undefined : { state, start };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // No such process, or no /proc on this system: both mean that nothing is known.
    return undefined;
  }
}
