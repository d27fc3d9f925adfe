/**
 * Children that have served and wait for the next run, by what they were started as, and where.
 *
 * A child that comes back gets a fresh session for the next run; the old one is closed where the child can do that. Runs of
 * different sessions may follow each other in one child: that is what a provider with a `poolSize` has agreed to. Anything
 * that is not in perfect order is ended instead.
 */
import type { SubagentProvider } from '../../../shared/subagent-protocol.ts';
import type { AcpChild } from './acp-child.ts';
import { type Graces, hurriedGraces } from './child-ending.ts';

const closeLimitMs = 1000;
/** A child that never closes its sessions, or leaks otherwise, is replaced some time. */
const maxRuns = 100;

interface IdleChild {
  readonly child: AcpChild;
  readonly timer: NodeJS.Timeout;
}

export class ChildPool {
  readonly #idle = new Map<string, IdleChild[]>();
  readonly #runs = new WeakMap<AcpChild, number>();
  /** Processes that a child had when its session was new. */
  readonly #members = new WeakMap<AcpChild, ReadonlySet<number>>();
  /** Children that are being ended by the pool itself. */
  readonly #ending = new Map<AcpChild, Promise<void>>();
  #down = false;

  /**
   * A child of this provider that waits and works in this directory, the last one first: the others may reach their idle
   * time. It is the caller's from now on.
   */
  take(provider: SubagentProvider, cwd: string): AcpChild | undefined {
    if (provider.poolSize === 0) return undefined;
    const idle = this.#idle.get(keyOf(provider)) ?? [];
    for (const one of idle.filter(({ child }) => child.cwd === cwd).toReversed()) {
      idle.splice(idle.indexOf(one), 1);
      clearTimeout(one.timer);
      if (one.child.isSound) return one.child;
      this.#end(one.child, hurriedGraces);
    }
    return undefined;
  }

  /** To be told of each session before its prompt: what the child starts from now on may not outlive the run. */
  noteStart(provider: SubagentProvider, child: AcpChild): void {
    if (provider.poolSize > 0) this.#members.set(child, new Set(child.members()));
  }

  /** Takes a child back whose run has ended well. False: it is not kept, and still the caller's to end. */
  async giveBack(provider: SubagentProvider, child: AcpChild, sessionId: string): Promise<boolean> {
    child.listen(undefined);
    const runs = (this.#runs.get(child) ?? 0) + 1;
    this.#runs.set(child, runs);
    if (!this.#wants(provider, child) || !child.isSound || !child.isQuiet || runs >= maxRuns) return false;
    if (child.traits.closesSessions && !(await child.closeSession(sessionId, closeLimitMs))) return false;
    // Asked again, since the close took time.
    if (!this.#wants(provider, child) || !child.isSound || this.#hasLeftSome(child)) return false;
    this.#keep(provider, child);
    return true;
  }

  /** Ends all that wait; nothing is kept from now on. Fulfils when none is left. */
  async shutdown(): Promise<void> {
    this.#down = true;
    for (const idle of this.#idle.values()) {
      for (const { child, timer } of idle.splice(0)) {
        clearTimeout(timer);
        this.#end(child, hurriedGraces);
      }
    }
    for (const child of this.#ending.keys()) this.#end(child, hurriedGraces);
    while (this.#ending.size > 0) await Promise.all(this.#ending.values());
  }

  #hasLeftSome(child: AcpChild): boolean {
    const before = this.#members.get(child);
    return child.members().some((pid) => before?.has(pid) !== true);
  }

  /** There is room, or a child of another directory to make room: what has just been used is used again sooner. */
  #wants(provider: SubagentProvider, { cwd }: AcpChild): boolean {
    const { poolSize } = provider;
    const idle = this.#idle.get(keyOf(provider)) ?? [];
    return !this.#down && poolSize > 0 && (idle.length < poolSize || idle.some(({ child }) => child.cwd !== cwd));
  }

  #keep(provider: SubagentProvider, child: AcpChild): void {
    const key = keyOf(provider);
    const idle = this.#idle.get(key) ?? [];
    this.#idle.set(key, idle);
    const oldest = idle.find((other) => other.child.cwd !== child.cwd);
    if (idle.length >= provider.poolSize && oldest !== undefined) this.#remove(idle, oldest, hurriedGraces);
    const { disposeEofGraceMs: eofMs, disposeGraceMs: termMs } = provider;
    const one: IdleChild = { child, timer: setTimeout(() => this.#remove(idle, one, { eofMs, termMs }), provider.poolIdleMs) };
    idle.push(one);
    // One that dies while it waits is nobody's failure.
    void child.closed.then(() => this.#remove(idle, one, hurriedGraces));
  }

  #remove(idle: IdleChild[], one: IdleChild, graces: Graces): void {
    const at = idle.indexOf(one);
    if (at < 0) return;
    idle.splice(at, 1);
    clearTimeout(one.timer);
    this.#end(one.child, graces);
  }

  #end(child: AcpChild, graces: Graces): void {
    const ended = child.end(graces).finally(() => this.#ending.delete(child));
    this.#ending.set(child, ended);
  }
}

/** Children are alike that were started alike by the same provider: another one's may have other rights. */
function keyOf({ name, command, args, env, envMode, envAllow }: SubagentProvider): string {
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([name, command, args, variables, envMode, envAllow]);
}
