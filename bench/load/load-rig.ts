/**
 * Agents under one load: starts them and their sessions, warms them up, runs the load as often as it is asked to, and says what it
 * came to.
 */
import { ThreadCpu } from './thread-cpu.ts';
import { type Percentiles, LatencyHistogram } from './histogram.ts';
import { runTurns } from './load-loop.ts';
import { LoadMeter, type MeterFigures } from './load-meter.ts';
import { attachTimes, cancelTimes } from './load-moments.ts';
import { inRepeats, type LoadReport } from './load-report.ts';
import { LoadSession } from './load-session.ts';
import type { LoadShape } from './load-shape.ts';
import { type LoopFigures, LoopWatch } from './loop-watch.ts';
import { storeSession } from './stored-sessions.ts';
import { type ModelServerProcess, startTarget, type Target } from './targets.ts';
import { TurnWork, type Workspace } from './turn-work.ts';

interface Repeat {
  readonly seconds: number;
  readonly frames: number;
  readonly bytes: number;
  readonly times: MeterFigures;
  readonly cpuMs: CpuMs;
  readonly loop: LoopFigures | undefined;
  readonly rssMb: number;
}

interface CpuMs {
  readonly tree: number;
  readonly main: number;
  readonly model: number;
  readonly client: number;
}

/** A session that is to be opened. */
interface Opening {
  readonly target: Target;
  readonly workspace: Workspace;
  readonly storedId: string | undefined;
}

export class LoadRig {
  readonly #agent: 'ours' | 'floor';
  readonly #shape: LoadShape;
  readonly #work: TurnWork;
  readonly #modelCpu: ThreadCpu;
  readonly #targets: Target[] = [];
  readonly #sessions: LoadSession[] = [];
  readonly #byId = new Map<string, LoadSession>();
  readonly #opened = new LatencyHistogram();
  readonly #repeats: Repeat[] = [];
  readonly #pss = { idle: 0, open: 0 };
  #attachMs: Percentiles | undefined;
  #meter: LoadMeter;
  #wrong = 0;

  private constructor(agent: 'ours' | 'floor', shape: LoadShape, model: ModelServerProcess) {
    this.#agent = agent;
    this.#shape = shape;
    this.#work = new TurnWork(shape);
    this.#meter = new LoadMeter(shape.delayMs);
    this.#modelCpu = new ThreadCpu(model.pid);
  }

  /** Starts the agents and opens the sessions, one after another. */
  static async enter(agent: 'ours' | 'floor', shape: LoadShape, model: ModelServerProcess): Promise<LoadRig> {
    const rig = new LoadRig(agent, shape, model);
    const openings: Opening[] = [];
    for (let index = 0; index < shape.connections; index += 1) openings.push(...(await rig.#connect(index, model)));
    rig.#pss.idle = rig.#sum((target) => target.agent.pssMb());
    for (const opening of openings) await rig.#open(opening);
    rig.#pss.open = rig.#sum((target) => target.agent.pssMb());
    // Whoever works unattended has no such method.
    if (agent === 'ours' && shape.profile === 'editor') rig.#attachMs = await attachTimes(rig.#sessions, shape);
    return rig;
  }

  /** Turns as many as a repeat has, without a pause between tokens, measured by nobody. */
  async warmUp(): Promise<void> {
    const shape: LoadShape = { ...this.#shape, delayMs: 0, loop: 'closed' };
    this.#meter = new LoadMeter(0);
    await runTurns(this.#sessions, shape, this.#meter, 0);
    this.#wrong += this.#meter.wrong;
  }

  async repeat(): Promise<void> {
    const shape = this.#shape;
    this.#meter = new LoadMeter(shape.delayMs);
    const watch = this.#agent === 'ours' ? new LoopWatch(this.#targets[0]!.agent) : undefined;
    const before = this.#counts();
    // Each repeat of an open loop has times of its own, and the same ones in each run.
    const ms = await runTurns(this.#sessions, shape, this.#meter, shape.seed + this.#repeats.length);
    const after = this.#counts();
    const loop = await watch?.stop();
    const used = (key: keyof CpuMs): number => after.cpuMs[key] - before.cpuMs[key];
    this.#wrong += this.#meter.wrong;
    this.#repeats.push({
      seconds: ms / 1000,
      frames: after.frames - before.frames,
      bytes: after.bytes - before.bytes,
      times: this.#meter.figures(),
      cpuMs: { tree: used('tree'), main: used('main'), model: used('model'), client: used('client') },
      loop,
      rssMb: this.#sum((target) => target.agent.rssMb()),
    });
  }

  /** Ends the agents and removes what they leave behind. */
  async finish(): Promise<LoadReport> {
    try {
      const rssPeak = this.#sum((target) => target.agent.rssMb('VmHWM'));
      const after = this.#sum((target) => target.agent.pssMb());
      for (const { agent } of this.#targets) agent.onText = undefined;
      const cancelMs = this.#agent === 'ours' ? await cancelTimes(this.#sessions) : undefined;
      const failed = this.#sum(({ agent }) => agent.failedCalls);
      const undone = this.#sessions.filter(({ workspace }) => !workspace.isDone()).length;
      const exitMs = await this.#close();
      const wrong = this.#wrong + failed + undone + (cancelMs?.wrong ?? 0);
      return this.#report({ rssPeak, after, exitMs, wrong, ...(cancelMs === undefined ? {} : { cancelMs: cancelMs.times }) });
    } finally {
      this.#work.remove();
    }
  }

  async #connect(index: number, model: ModelServerProcess): Promise<Opening[]> {
    const { sessions, history } = this.#shape;
    const workspaces = Array.from({ length: sessions }, (_, number) => this.#work.workspace(`${index}-${number}`));
    let stored: readonly string[] = [];
    const target = await startTarget(this.#agent === 'floor' ? 'floor' : targetName(this.#shape), model, {
      flags: flagsFor(this.#shape),
      prepare: (stateDir) => {
        if (history > 0) stored = workspaces.map(({ path }) => storeSession(stateDir, path, history));
      },
    });
    target.agent.onText = (id, text, at) => {
      const session = this.#byId.get(id);
      if (session !== undefined) this.#meter.text(session, text, at);
    };
    this.#targets.push(target);
    return workspaces.map((workspace, number) => ({ target, workspace, storedId: stored[number] }));
  }

  async #open({ target, workspace, storedId }: Opening): Promise<void> {
    const where = { cwd: workspace.path, mcpServers: [] };
    const start = performance.now();
    const answer =
      storedId === undefined
        ? await target.agent.request('session/new', where)
        : await target.agent.request('session/resume', { sessionId: storedId, ...where });
    this.#opened.record(performance.now() - start);
    const session = new LoadSession(target, storedId ?? answer.sessionId, workspace, this.#agent === 'ours');
    this.#sessions.push(session);
    this.#byId.set(session.id, session);
  }

  #counts(): { readonly frames: number; readonly bytes: number; readonly cpuMs: CpuMs } {
    const trees = this.#targets.map(({ agent }) => agent.cpu.read());
    const { user, system } = process.cpuUsage();
    return {
      frames: this.#sum(({ agent }) => agent.updates),
      bytes: this.#sum(({ agent }) => agent.bytes),
      cpuMs: {
        tree: trees.reduce((sum, { total }) => sum + total, 0),
        main: trees.reduce((sum, { main }) => sum + main, 0),
        model: this.#modelCpu.read().total,
        client: (user + system) / 1000,
      },
    };
  }

  #sum(of: (target: Target) => number): number {
    return this.#targets.reduce((sum, target) => sum + of(target), 0);
  }

  async #close(): Promise<number[]> {
    const exitMs: number[] = [];
    for (const target of this.#targets) exitMs.push(await target.close());
    return exitMs;
  }

  #report(end: Pick<LoadReport, 'exitMs' | 'wrong' | 'cancelMs'> & { readonly rssPeak: number; readonly after: number }): LoadReport {
    const shape = this.#shape;
    const repeats = this.#repeats;
    const tokens = shape.connections * shape.sessions * shape.turns * shape.tokens;
    const times = (key: keyof MeterFigures) => inRepeats(repeats.map((repeat) => repeat.times[key]));
    const cpu = (key: keyof CpuMs): number[] => repeats.map(({ cpuMs }) => (cpuMs[key] * 1000) / tokens);
    const loops = repeats.flatMap(({ loop }) => (loop === undefined ? [] : [loop]));
    const showsDeltas = shape.profile === 'editor';
    const { rssPeak, after, ...rest } = end;
    return {
      agent: this.#agent,
      shape,
      seconds: repeats.map(({ seconds }) => seconds),
      tokensPerSecond: repeats.map(({ seconds }) => tokens / seconds),
      framesPerSecond: repeats.map(({ seconds, frames }) => frames / seconds),
      bytesPerSecond: repeats.map(({ seconds, bytes }) => bytes / seconds),
      turnMs: times('turn'),
      firstTokenMs: times('first'),
      ...(showsDeltas && shape.mix === 'none' ? { addedFirstMs: times('addedFirst') } : {}),
      ...(showsDeltas ? { addedMs: times('added') } : {}),
      modelLateMs: times('modelLate'),
      cpuUsPerToken: { tree: cpu('tree'), main: cpu('main'), model: cpu('model'), client: cpu('client') },
      ...(loops.length === 0
        ? {}
        : {
            loop: {
              delayMs: { p50: loops.map(({ p50 }) => p50), p99: loops.map(({ p99 }) => p99) },
              statusMs: inRepeats(loops.map(({ statusMs }) => statusMs)),
            },
          }),
      memoryMb: { rss: repeats.map(({ rssMb }) => rssMb), rssPeak, pss: { ...this.#pss, after } },
      initializeMs: this.#targets.map(({ initializeMs }) => initializeMs),
      openMs: this.#opened.percentiles(),
      ...(this.#attachMs === undefined ? {} : { attachMs: this.#attachMs }),
      ...rest,
    };
  }
}

function targetName({ isolation, threads }: LoadShape): string {
  return `${isolation === 'parked' ? 'shared' : isolation}${threads === undefined ? '' : `:${threads}`}`;
}

/** Bounds that are there for people and providers are lifted: what is measured is the work. */
function flagsFor({ profile, isolation }: LoadShape): string[] {
  const lifted = [
    '--context-window',
    '100000000',
    '--max-queued-prompts',
    '10000',
    '--max-running-turns',
    '100000',
    '--attach-timeout-ms',
    '600000',
  ];
  const provider = ['--max-concurrency', '100000', '--slow-start', '100000'];
  const parked = isolation === 'parked' ? ['--park-after-ms', '1'] : [];
  return ['--profile', profile, '--permission-mode', 'full-access', '--log-level', 'error', ...lifted, ...provider, ...parked];
}
