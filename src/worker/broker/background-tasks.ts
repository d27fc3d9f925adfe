/**
 * All background tasks there are, each with its owner.
 *
 * Ids are short, counted over the whole process and easy to guess, so an id alone gives no right: every call names the
 * caller, and another session's task is refused.
 */
import type {
  BackgroundOutput,
  BackgroundStarted,
  BackgroundStatus,
  CommandSpec,
  ControlNews,
  SpawnFailure,
  TaskAnswer,
} from '../../shared/broker-protocol.ts';
import { BackgroundTask, taskGraceMs } from './background-task.ts';
import type { Launch } from './process-group.ts';

const maxRunningPerOwner = 10;
/** Ended tasks whose output can still be read; the oldest go first. */
const maxEndedPerOwner = 20;
/** A caller that waits longer asks again. */
const maxWaitMs = 600_000;

export class BackgroundTasks {
  readonly #tasks = new Map<string, BackgroundTask>();
  /** Between the check of the cap and the task's place in the table. */
  readonly #starting = new Map<string, number>();
  #lastNumber = 0;

  /** Starts a task, unless the owner has too many running. */
  async start(spec: CommandSpec, launch: () => Promise<Launch>): Promise<BackgroundStarted | SpawnFailure> {
    const { owner } = spec;
    const starting = this.#starting.get(owner) ?? 0;
    if (this.countRunning(owner) + starting >= maxRunningPerOwner) {
      return { spawnError: `EAGAIN: this session already runs ${maxRunningPerOwner} background tasks; end one before starting another` };
    }
    this.#starting.set(owner, starting + 1);
    try {
      const launched = await launch();
      if (!launched.ok) return launched;
      this.#lastNumber += 1;
      const task = new BackgroundTask(`bash-${this.#lastNumber}`, spec, launched);
      this.#tasks.set(task.id, task);
      this.#forgetOldest(owner);
      return { taskId: task.id, ...(launched.networkOff === undefined ? {} : { networkOff: launched.networkOff }) };
    } finally {
      const left = (this.#starting.get(owner) ?? 1) - 1;
      if (left === 0) this.#starting.delete(owner);
      else this.#starting.set(owner, left);
    }
  }

  async read(owner: string, taskId: string, waitMs: number): Promise<TaskAnswer<BackgroundOutput>> {
    const found = this.#find(owner, taskId);
    return found.ok ? { ok: true, value: await found.value.read(Math.min(waitMs, maxWaitMs)) } : found;
  }

  async kill(owner: string, taskId: string): Promise<TaskAnswer<BackgroundStatus & ControlNews>> {
    const found = this.#find(owner, taskId);
    if (!found.ok) return found;
    await found.value.end(taskGraceMs);
    return { ok: true, value: { ...found.value.status, ...(await found.value.controlNews()) } };
  }

  countRunning(owner: string): number {
    return this.#of(owner).filter((task) => task.status.state === 'running').length;
  }

  /** Ends the owner's tasks and forgets them. */
  async release(owner: string, graceMs: number): Promise<void> {
    const tasks = this.#of(owner);
    await Promise.all(tasks.map((task) => task.end(graceMs)));
    for (const task of tasks) this.#tasks.delete(task.id);
  }

  #find(owner: string, taskId: string): TaskAnswer<BackgroundTask> {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return { ok: false, code: 'NOT_FOUND' };
    return task.owner === owner ? { ok: true, value: task } : { ok: false, code: 'FOREIGN' };
  }

  #of(owner: string): BackgroundTask[] {
    return [...this.#tasks.values()].filter((task) => task.owner === owner);
  }

  #forgetOldest(owner: string): void {
    const ended = this.#of(owner).filter((task) => task.status.state === 'exited');
    for (const task of ended.slice(0, -maxEndedPerOwner)) this.#tasks.delete(task.id);
  }
}
