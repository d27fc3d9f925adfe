/**
 * All runs of subagents that are processes, each with its owner: the broker's side of {@link SubagentApi}.
 *
 * A run id alone gives no right: every call names the owner, and another session's run is refused. The processes of a run
 * belong to its owner, or to the pool where its provider keeps children warm, since those outlive sessions.
 */
import { randomUUID } from 'node:crypto';
import type { TaskAnswer } from '../../../shared/broker-protocol.ts';
import type { SubagentApi, SubagentNews, SubagentProvider, SubagentRequest, SubagentStarted } from '../../../shared/subagent-protocol.ts';
import { ProviderSlots } from '../../../shared/subagents/provider-slots.ts';
import type { Launch, LaunchSpec } from '../process-group.ts';
import { AcpChild } from './acp-child.ts';
import { ChildPool } from './child-pool.ts';
import { loadAcpClient } from './load-acp-client.ts';
import { SubagentRun } from './subagent-run.ts';

/** The owner of children that may serve several sessions, one after the other. */
export const poolOwner = 'pool';

/** Runs that an owner may leave undisposed. */
const maxRunsPerOwner = 200;
/** A caller that waits longer asks again. */
const maxWaitMs = 600_000;

export interface SubagentsParts {
  readonly providers: readonly SubagentProvider[];
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** What a provider's children get; its own variables are among them. */
  readonly environment: (provider: SubagentProvider) => Readonly<Record<string, string>>;
  /** Starts a process group whose members carry both owners' marks, and tells main of it. */
  readonly launch: (owners: readonly [string, string], spec: LaunchSpec) => Promise<Launch>;
  /** Ends what carries the owner's mark, in its group or out of it. */
  readonly sweep: (owner: string) => Promise<void>;
  /** The processes that carry the owner's mark now. */
  readonly marked: (owner: string) => readonly number[];
}

export class Subagents implements SubagentApi {
  readonly #parts: SubagentsParts;
  readonly #pool = new ChildPool();
  readonly #runs = new Map<string, SubagentRun>();
  readonly #slots = new Map<string, ProviderSlots>();
  #down = false;

  constructor(parts: SubagentsParts) {
    this.#parts = parts;
    for (const provider of parts.providers) this.#slots.set(provider.name, new ProviderSlots(provider.maxRunning));
  }

  async startSubagent(request: SubagentRequest): Promise<SubagentStarted> {
    const provider = this.#parts.providers.find((one) => one.name === request.provider);
    const { command } = provider ?? {};
    if (provider === undefined || command === undefined) return this.#unknownProvider(request.provider);
    if (this.#down) return { ok: false, code: 'SHUTTING_DOWN', message: 'the server is going down and starts no more subagents' };
    if (this.#runs.has(request.runId)) return { ok: false, code: 'INVALID_PARAMS', message: 'a subagent run with this id exists already' };
    if (this.#of(request.owner).length >= maxRunsPerOwner) {
      const message = `this session holds ${maxRunsPerOwner} subagent runs, which is the limit; end or read some first`;
      return { ok: false, code: 'OVERLOADED', message };
    }
    const run = new SubagentRun({
      request,
      provider,
      pool: this.#pool,
      takeSlot: async (signal, waitMs) => await this.#slots.get(provider.name)?.take(signal, waitMs),
      prepare: loadAcpClient,
      spawn: (cwd) => this.#spawn(provider, command, request.owner, cwd),
    });
    this.#runs.set(run.runId, run);
    const started = await run.started;
    // There is nothing to dispose then.
    if (!started.ok && this.#runs.get(run.runId) === run) this.#runs.delete(run.runId);
    return started;
  }

  async awaitSubagent(owner: string, runId: string, seq: number, waitMs: number): Promise<TaskAnswer<SubagentNews>> {
    const run = this.#runs.get(runId);
    if (run === undefined) return { ok: false, code: 'NOT_FOUND' };
    if (run.owner !== owner) return { ok: false, code: 'FOREIGN' };
    return { ok: true, value: await run.news.since(seq, Math.min(waitMs, maxWaitMs)) };
  }

  async cancelSubagent(owner: string, runId: string): Promise<void> {
    this.#own(owner, runId)?.cancel();
  }

  async answerSubagent(owner: string, runId: string, questionId: string, allow: boolean): Promise<void> {
    this.#own(owner, runId)?.answer(questionId, allow);
  }

  async disposeSubagent(owner: string, runId: string): Promise<void> {
    await this.#dispose(this.#own(owner, runId), false);
  }

  async countSubagents(owner: string): Promise<number> {
    return this.#of(owner).filter((run) => run.isRunning).length;
  }

  /** Ends a run whose caller is gone and will read nothing. */
  async abandon(owner: string, runId: string): Promise<void> {
    await this.#dispose(this.#own(owner, runId), true);
  }

  /** Ends all runs of the owner, with short graces: somebody waits. */
  async releaseOwner(owner: string): Promise<void> {
    await Promise.all(this.#of(owner).map((run) => this.#dispose(run, true)));
  }

  /** Ends everything there is, the pool's children too. Later starts are refused. */
  async shutdown(): Promise<void> {
    this.#down = true;
    const owners = new Set([...this.#runs.values()].map((run) => run.owner));
    await Promise.all([...[...owners].map((owner) => this.releaseOwner(owner)), this.#pool.shutdown()]);
  }

  async #dispose(run: SubagentRun | undefined, hurried: boolean): Promise<void> {
    if (run === undefined) return;
    await run.dispose(hurried);
    if (this.#runs.get(run.runId) === run) this.#runs.delete(run.runId);
  }

  #own(owner: string, runId: string): SubagentRun | undefined {
    const run = this.#runs.get(runId);
    return run?.owner === owner ? run : undefined;
  }

  #of(owner: string): SubagentRun[] {
    return [...this.#runs.values()].filter((run) => run.owner === owner);
  }

  #unknownProvider(name: string): SubagentStarted {
    const known = this.#parts.providers.filter((one) => one.command !== undefined).map((one) => one.name);
    const message = `there is no subagent "${name}" that is a program; there are: ${known.join(', ') || 'none'}`;
    return { ok: false, code: 'INVALID_PARAMS', message };
  }

  async #spawn(
    provider: SubagentProvider,
    command: string,
    owner: string,
    cwd: string,
  ): Promise<AcpChild | { readonly spawnError: string }> {
    const library = await loadAcpClient();
    const environment = this.#parts.environment(provider);
    // A mark of its own, so that what leaves the child's group is found without touching the owner's other processes.
    const childMark = `subagent-${randomUUID()}`;
    const holder = provider.poolSize > 0 ? poolOwner : owner;
    const spec: LaunchSpec = { command, args: provider.args, cwd, env: environment, stdin: 'pipe' };
    const launch = await this.#parts.launch([holder, childMark], spec);
    if (!launch.ok) return { spawnError: launch.spawnError };
    const { clientInfo, sweep, marked } = this.#parts;
    return new AcpChild({
      group: launch.group,
      library,
      cwd,
      environment,
      clientInfo,
      sweep: () => sweep(childMark),
      members: () => marked(childMark),
    });
  }
}
