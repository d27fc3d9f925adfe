/**
 * A broker with one subagent provider, for tests: its children are real processes. After each test nothing may be left of
 * them.
 */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { markedProcesses } from '../../src/shared/process-table.ts';
import type {
  SubagentActivity,
  SubagentApi,
  SubagentNews,
  SubagentProvider,
  SubagentQuestion,
  SubagentRequest,
  SubagentResult,
} from '../../src/shared/subagent-protocol.ts';
import { Broker } from '../../src/worker/broker/broker.ts';

const badAgent = fileURLToPath(new URL('./bad-agent-main.js', import.meta.url));

/** A provider whose child does what `behaviour` says. Short graces: a test waits for them. */
export function badProvider(behaviour: string, more: Partial<SubagentProvider> = {}, detail = ''): SubagentProvider {
  return {
    name: 'child',
    description: undefined,
    command: process.execPath,
    args: [badAgent, behaviour, detail],
    cwd: undefined,
    permission: 'reject',
    env: {},
    envMode: 'scrub',
    envAllow: [],
    disposeEofGraceMs: 2000,
    disposeGraceMs: 200,
    startTimeoutMs: 20_000,
    idleTimeoutMs: 0,
    maxRunning: 10,
    maxDepth: 3,
    poolSize: 0,
    poolIdleMs: 60_000,
    persona: undefined,
    tools: undefined,
    outputSchema: undefined,
    ...more,
  };
}

/** Whether a process runs, whatever mark it carries. One that has ended and waits to be reaped does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** How a run went, as its owner saw it. */
export interface Followed {
  readonly result: SubagentResult;
  readonly activities: readonly SubagentActivity[];
  readonly dropped: number;
}

let lastRun = 0;

export class SubagentRig {
  readonly broker: Broker;
  /** Process groups that live, with their owners. */
  readonly groups = new Map<number, string>();
  /** Every group there has been. */
  readonly started: number[] = [];
  readonly mark = `mark-${process.pid}-${Math.random().toString(36).slice(2)}`;
  /** The session's cwd. */
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), 'subagent-')));

  constructor(t: Test, providers: readonly SubagentProvider[], ambient: Record<string, string | undefined> = process.env) {
    this.broker = new Broker({
      mark: this.mark,
      ambient,
      subagents: providers,
      agentInfo: { name: 'rig', version: '1' },
      onGroupStarted: (pgid, owner) => {
        this.started.push(pgid);
        this.groups.set(pgid, owner);
      },
      onGroupEnded: (pgid) => this.groups.delete(pgid),
    });
    t.teardown(async () => {
      await this.broker.shutdown();
      const left = this.left();
      rmSync(this.dir, { recursive: true, force: true });
      // A teardown cannot assert, but its throw fails the test.
      if (left.length > 0 || this.groups.size > 0) throw new Error(`processes are left: ${left.join(', ')}; groups: ${this.groups.size}`);
    });
  }

  /** Processes that carry this broker's mark. */
  left(): number[] {
    return markedProcesses(`${this.mark}/`).map(({ pid }) => pid);
  }

  request(more: Partial<SubagentRequest> = {}): SubagentRequest {
    lastRun += 1;
    return {
      owner: 's1',
      runId: `run-${lastRun}`,
      provider: 'child',
      prompt: 'do it',
      cwd: this.dir,
      depth: 1,
      spillDir: join(this.dir, 'spill'),
      ...more,
    };
  }

  /** Starts a run that must start. */
  async start(more: Partial<SubagentRequest> = {}): Promise<SubagentRequest> {
    const request = this.request(more);
    const started = await this.broker.startSubagent(request);
    if (!started.ok) throw new Error(`it did not start: ${started.code} ${started.message}`);
    return request;
  }

  /** A whole run: started, followed to its end, and put away. */
  async run(more: Partial<SubagentRequest> = {}): Promise<Followed> {
    const request = await this.start(more);
    const followed = await follow(this.broker, request);
    await this.broker.disposeSubagent(request.owner, request.runId);
    return followed;
  }

  /** The first question of a run. */
  async question(request: SubagentRequest): Promise<SubagentQuestion> {
    const news = await newsWhere(this.broker, request, ({ questions }) => questions.length > 0);
    const [question] = news.questions;
    if (question === undefined) throw new Error('no question was asked');
    return question;
  }
}

/** Polls until the news is as wanted, or the run has ended. */
export async function newsWhere(
  api: SubagentApi,
  { owner, runId }: SubagentRequest,
  isWanted: (news: SubagentNews) => boolean,
): Promise<SubagentNews> {
  for (let seq = -1; ; ) {
    const answer = await api.awaitSubagent(owner, runId, seq, 20_000);
    if (!answer.ok) throw new Error(`no news: ${answer.code}`);
    const news = answer.value;
    if (isWanted(news)) return news;
    if (news.result !== undefined || news.seq === seq) throw new Error(`the run did not get there: ${JSON.stringify(news)}`);
    seq = news.seq;
  }
}

/** Polls to the end, as a session does. */
export async function follow(api: SubagentApi, request: SubagentRequest): Promise<Followed> {
  const activities: SubagentActivity[] = [];
  let dropped = 0;
  const { result } = await newsWhere(api, request, (news) => {
    activities.push(...news.activities);
    dropped += news.dropped;
    return news.result !== undefined;
  });
  if (result === undefined) throw new Error('the run has no result');
  return { result, activities, dropped };
}

/** The text that was told while the run went on. */
export function toldText({ activities }: Followed): string {
  return activities.map((activity) => (activity.kind === 'text' ? activity.text : '')).join('');
}
