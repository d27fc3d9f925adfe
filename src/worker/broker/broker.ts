/**
 * The owner of all child processes: starts them, captures them, ends them, and proves that they are gone.
 *
 * Runs in the broker thread, which is never terminated while a child lives. Every process belongs to an owner (a session
 * id). Knows nothing of tools or sessions beyond that word.
 */
import type {
  BackgroundOutput,
  BackgroundStarted,
  BrokerApi,
  CommandSpec,
  RunOutput,
  RunRequest,
  RunResult,
  SpawnFailure,
  TaskAnswer,
} from '../../shared/broker-protocol.ts';
import { ServerError } from '../../shared/errors.ts';
import type { McpCallRequest, McpCallResult, McpNews, McpOpenRequest } from '../../shared/mcp-protocol.ts';
import { noSandbox, type SandboxSettings, type SandboxState } from '../../shared/sandbox.ts';
import type { SpawnGate } from '../../shared/spawn-gate.ts';
import type { SubagentNews, SubagentProvider, SubagentRequest, SubagentStarted } from '../../shared/subagent-protocol.ts';
import { BackgroundTasks } from './background-tasks.ts';
import { childEnvironment, type Environment, subagentEnvironment } from './environment.ts';
import { EscapeeSweep, markVariable } from './escapee-sweep.ts';
import { cancelGraceMs, ForegroundRun } from './foreground-run.ts';
import { McpServers } from './mcp/mcp-servers.ts';
import type { ServerLaunch } from './mcp/stdio-server.ts';
import type { NetworkCut } from './network-cut.ts';
import { type Launch, launchGroup, type LaunchSpec } from './process-group.ts';
import { Containment } from './sandbox/containment.ts';
import { launchPrepared, serverEnvironment, withoutVariables } from './sandbox/launch-prepared.ts';
import { Subagents } from './subagents/subagents.ts';

/** A reader that waits longer asks again. */
const maxReadWaitMs = 60_000;

export interface BrokerOptions {
  /** Called before anything else can happen to the group, so that main can end it should this thread die. */
  readonly onGroupStarted: (pgid: number, owner: string) => void;
  readonly onGroupEnded: (pgid: number) => void;
  /** Unique to this server process: the mark by which processes are found that left their group. */
  readonly mark: string;
  /** What children may inherit, before the scrub. */
  readonly ambient: Environment;
  /** Variables that are left out whatever they are called. */
  readonly withheldVariables?: readonly string[];
  /** How networks are cut off; the system's own way by default. */
  readonly networkCut?: NetworkCut;
  /** What commands are kept in; nothing by default. */
  readonly sandbox?: SandboxSettings;
  /** Absolute directories of this program's own state and settings: hidden from contained commands. */
  readonly ownDirectories?: readonly string[];
  readonly subagents?: readonly SubagentProvider[];
  /** How this server calls itself towards its subagents. */
  readonly agentInfo?: { readonly name: string; readonly version: string };
  /** Shared with main, which closes it before it kills all children; without one every start passes. */
  readonly spawnGate?: SpawnGate;
}

export class Broker implements BrokerApi {
  readonly #options: BrokerOptions;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #runs = new Map<string, ForegroundRun>();
  readonly #tasks = new BackgroundTasks();
  readonly #sweep: EscapeeSweep;
  readonly #containment: Containment;
  readonly #subagents: Subagents;
  readonly #mcp: McpServers;
  /** Owners that have started something since their last release. */
  readonly #active = new Set<string>();
  readonly #releases = new Map<string, Promise<void>>();
  /** Of owners that work for another one. */
  readonly #parents = new Map<string, string>();
  #down: Promise<void> | undefined;

  constructor(options: BrokerOptions) {
    this.#options = options;
    this.#environment = childEnvironment(options.ambient, options.withheldVariables);
    this.#sweep = new EscapeeSweep(options.mark);
    this.#containment = new Containment({
      settings: options.sandbox ?? noSandbox,
      own: options.ownDirectories ?? [],
      ambient: options.ambient,
      networkCut: options.networkCut,
    });
    const clientInfo = options.agentInfo ?? { name: 'dsh-acp', version: '0' };
    this.#mcp = new McpServers({
      clientInfo,
      environment: this.#environment,
      launch: (owner, mark, spec) => this.#launchServer([mcpOwner(owner), mark], spec),
      sweep: (mark) => this.#sweep.sweep(mark),
    });
    this.#subagents = new Subagents({
      providers: options.subagents ?? [],
      clientInfo,
      environment: (provider) => subagentEnvironment(options.ambient, provider, options.withheldVariables),
      launch: (owners, spec) => this.#launch(owners, spec),
      sweep: (owner) => this.#sweep.sweep(owner),
      marked: (owner) => this.#sweep.marked(owner),
    });
  }

  async run(request: RunRequest): Promise<RunResult> {
    this.#refuseWhenDown();
    const key = runKey(request.owner, request.runId);
    if (this.#runs.has(key)) throw new ServerError('INTERNAL', 'A run with this id is under way; every run needs an id of its own.');
    const run = new ForegroundRun(request, this.#launchCommand(request));
    this.#runs.set(key, run);
    try {
      return await run.result;
    } finally {
      this.#runs.delete(key);
    }
  }

  async readRun(owner: string, runId: string, waitMs: number): Promise<RunOutput | undefined> {
    return await this.#runs.get(runKey(owner, runId))?.read(Math.min(waitMs, maxReadWaitMs));
  }

  async cancelRun(owner: string, runId: string): Promise<void> {
    this.#runs.get(runKey(owner, runId))?.cancel();
  }

  async startBackground(spec: CommandSpec): Promise<BackgroundStarted | SpawnFailure> {
    this.#refuseWhenDown();
    return await this.#tasks.start(spec, () => this.#launchCommand(spec));
  }

  async readBackground(owner: string, taskId: string, waitMs: number): Promise<TaskAnswer<BackgroundOutput>> {
    return await this.#tasks.read(owner, taskId, waitMs);
  }

  async killBackground(owner: string, taskId: string): ReturnType<BrokerApi['killBackground']> {
    return await this.#tasks.kill(owner, taskId);
  }

  async countBackground(owner: string): Promise<number> {
    return this.#tasks.countRunning(owner);
  }

  async canCutNetwork(): Promise<boolean> {
    return await this.#containment.canCutNetwork();
  }

  async sandboxState(): Promise<SandboxState> {
    return await this.#containment.state();
  }

  async startSubagent(request: SubagentRequest): Promise<SubagentStarted> {
    this.#refuseWhenDown();
    this.#active.add(request.owner);
    return await this.#subagents.startSubagent(request);
  }

  async awaitSubagent(owner: string, runId: string, seq: number, waitMs: number): Promise<TaskAnswer<SubagentNews>> {
    return await this.#subagents.awaitSubagent(owner, runId, seq, waitMs);
  }

  async cancelSubagent(owner: string, runId: string): Promise<void> {
    await this.#subagents.cancelSubagent(owner, runId);
  }

  async answerSubagent(owner: string, runId: string, questionId: string, allow: boolean): Promise<void> {
    await this.#subagents.answerSubagent(owner, runId, questionId, allow);
  }

  async disposeSubagent(owner: string, runId: string): Promise<void> {
    await this.#subagents.disposeSubagent(owner, runId);
  }

  async countSubagents(owner: string): Promise<number> {
    return await this.#subagents.countSubagents(owner);
  }

  /** Ends a subagent whose caller is gone. */
  async abandonSubagent(owner: string, runId: string): Promise<void> {
    await this.#subagents.abandon(owner, runId);
  }

  async openMcp(request: McpOpenRequest): Promise<void> {
    await this.#mcp.openMcp(request);
  }

  async awaitMcp(owner: string, seq: number, waitMs: number): Promise<McpNews> {
    return await this.#mcp.awaitMcp(owner, seq, waitMs);
  }

  async callMcpTool(request: McpCallRequest): Promise<McpCallResult> {
    return await this.#mcp.callMcpTool(request);
  }

  async cancelMcpCall(owner: string, callId: string): Promise<void> {
    await this.#mcp.cancelMcpCall(owner, callId);
  }

  async adopt(owner: string, parent: string): Promise<void> {
    this.#parents.set(owner, parent);
    this.#parents.set(mcpOwner(owner), mcpOwner(parent));
  }

  async releaseOwner(owner: string): Promise<void> {
    await Promise.all([this.#mcp.releaseOwner(owner), this.#releaseCommands(owner)]);
  }

  async parkOwner(owner: string): Promise<void> {
    await Promise.all([this.#mcp.park(owner), this.#releaseCommands(owner)]);
  }

  async #releaseCommands(owner: string): Promise<void> {
    this.#parents.delete(owner);
    this.#parents.delete(mcpOwner(owner));
    const earlier = this.#releases.get(owner);
    // Nothing was started since the last release: that one is all there is to wait for.
    if (!this.#active.delete(owner)) return await earlier;
    const release = this.#releaseAfter(earlier, owner);
    this.#releases.set(owner, release);
    try {
      await release;
    } finally {
      if (this.#releases.get(owner) === release) this.#releases.delete(owner);
    }
  }

  async #releaseAfter(earlier: Promise<void> | undefined, owner: string): Promise<void> {
    await Promise.all([earlier, this.#release(owner)]);
  }

  async #release(owner: string): Promise<void> {
    const runs = [...this.#runs.values()].filter((run) => run.owner === owner);
    for (const run of runs) run.cancel();
    const tasks = this.#tasks.release(owner, cancelGraceMs);
    await Promise.all([...runs.map((run) => run.result), tasks, this.#subagents.releaseOwner(owner)]);
    await this.#sweep.sweep(owner);
    await this.#containment.release(owner);
  }

  async shutdown(): Promise<void> {
    this.#down ??= Promise.all([this.#releaseAll(), this.#subagents.shutdown(), this.#mcp.shutdown()]).then(() => undefined);
    await this.#down;
  }

  async #releaseAll(): Promise<void> {
    // Again, since a call that was under way may have started something behind the first look.
    while (this.#active.size > 0 || this.#releases.size > 0) {
      await Promise.all([...this.#active, ...this.#releases.keys()].map((owner) => this.releaseOwner(owner)));
    }
  }

  #refuseWhenDown(): void {
    if (this.#down !== undefined) throw new ServerError('SHUTTING_DOWN', 'The server is going down and starts no more commands.');
  }

  async #launchCommand(spec: CommandSpec): Promise<Launch> {
    this.#active.add(spec.owner);
    const prepared = await this.#containment.prepare(spec);
    if (!prepared.ok) return prepared;
    const env = { ...withoutVariables(this.#environment, prepared.withheld), ...prepared.env, ...spec.env };
    return await launchPrepared(prepared, { cwd: spec.cwd, env }, (launch) => this.#launch([spec.owner], launch));
  }

  async #launchServer(owners: readonly [string, ...string[]], { directories, ...spec }: ServerLaunch): Promise<Launch> {
    const prepared = await this.#containment.prepareServer(spec, directories);
    if (!prepared.ok) return prepared;
    const env = serverEnvironment(prepared, spec.env, this.#options.ambient);
    return await launchPrepared(prepared, { ...spec, env }, (launch) => this.#launch(owners, launch));
  }

  /** The first owner is the one that main is told of; the group carries the marks of all, and of those they work for. */
  async #launch(owners: readonly [string, ...string[]], spec: LaunchSpec): Promise<Launch> {
    let mark = this.#options.ambient[markVariable];
    for (const owner of owners.flatMap((one) => this.#familyOf(one))) mark = this.#sweep.markFor(owner, mark);
    const launch = await launchGroup({ ...spec, env: { ...spec.env, [markVariable]: mark ?? '' } }, this.#options.spawnGate);
    if (launch.ok) this.#announce(launch.group.pgid, owners[0], launch.group.gone);
    return launch;
  }

  #familyOf(owner: string): string[] {
    const family = [owner];
    for (let parent = this.#parents.get(owner); parent !== undefined; parent = this.#parents.get(parent)) family.unshift(parent);
    return family;
  }

  #announce(pgid: number, owner: string, gone: Promise<void>): void {
    this.#options.onGroupStarted(pgid, owner);
    void gone.then(() => this.#options.onGroupEnded(pgid));
  }
}

/**
 * The owner of a session's MCP servers. Another one than of its commands, since a session that leaves its thread keeps them:
 * what is left of its commands is looked for by their mark, and must not find these.
 */
function mcpOwner(owner: string): string {
  return `mcp:${owner}`;
}

function runKey(owner: string, runId: string): string {
  return JSON.stringify([owner, runId]);
}
