/** Children that do what a test says, behind the same calls as real ones; and a session's worth of runs over them. */
import type { EventData, EventInput } from '../../../../src/shared/events.ts';
import type {
  SubagentActivity,
  SubagentApi,
  SubagentNews,
  SubagentProvider,
  SubagentQuestion,
  SubagentRequest,
  SubagentResult,
  SubagentStarted,
  SubagentUsage,
} from '../../../../src/shared/subagent-protocol.ts';
import { jobIdOf } from '../../../../src/worker/subagents/subagent-run.ts';
import { SubagentRuns, type SubagentRunsParts } from '../../../../src/worker/subagents/subagent-runs.ts';

export const capabilities = { persona: false, tools: false, depth: false, outputSchema: false, inheritsParentContext: false } as const;

export function provider(name: string, more: Partial<SubagentProvider> = {}): SubagentProvider {
  return {
    name,
    description: undefined,
    command: name === 'self' ? undefined : name,
    args: [],
    cwd: undefined,
    permission: 'ask',
    env: {},
    envMode: 'scrub',
    envAllow: [],
    disposeEofGraceMs: 1,
    disposeGraceMs: 1,
    startTimeoutMs: 1,
    idleTimeoutMs: 0,
    maxRunning: 8,
    maxDepth: 3,
    poolSize: 0,
    poolIdleMs: 1,
    persona: undefined,
    tools: undefined,
    outputSchema: undefined,
    ...more,
  };
}

class FakeChild {
  readonly request: SubagentRequest;
  cancelled = false;
  disposed = false;
  readonly answers = new Map<string, boolean>();
  #activities: SubagentActivity[] = [];
  #questions: SubagentQuestion[] = [];
  #result: SubagentResult | undefined;
  #seq = 0;
  #wake: () => void = () => undefined;
  /** Ignores a cancel, as a child may. */
  deaf = false;

  constructor(request: SubagentRequest) {
    this.request = request;
  }

  does(...activities: SubagentActivity[]): void {
    this.#activities.push(...activities);
    this.#changed();
  }

  says(text: string): void {
    this.does({ kind: 'text', text });
  }

  asks(question: Partial<SubagentQuestion> & { readonly questionId: string }): void {
    this.#questions.push({ title: 'Write b.txt', toolKind: 'edit', content: [], ...question });
    this.#changed();
  }

  ends(result: Partial<SubagentResult> = {}): void {
    this.#result ??= { stopReason: 'completed', output: '', durationMs: 1, ...result };
    this.#changed();
  }

  answer(questionId: string, allow: boolean): void {
    this.answers.set(questionId, allow);
    this.#questions = this.#questions.filter((question) => question.questionId !== questionId);
    this.#changed();
  }

  async news(seq: number): Promise<SubagentNews> {
    if (this.#seq === seq && this.#result === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const activities = this.#activities;
    this.#activities = [];
    const result = this.#result;
    return { seq: this.#seq, activities, dropped: 0, questions: this.#questions, ...(result === undefined ? {} : { result }) };
  }

  #changed(): void {
    this.#seq += 1;
    this.#wake();
  }
}

export class FakeAgents implements SubagentApi {
  /** By job id. */
  readonly children = new Map<string, FakeChild>();
  /** Decides about a start; a child is there when it says so. */
  onStart: (request: SubagentRequest) => Promise<SubagentStarted> = async () => ({ ok: true, capabilities });
  /** Fulfils when the last child is to be gone. */
  onDispose: () => Promise<void> = async () => undefined;

  child(runId: string): FakeChild {
    const child = this.children.get(jobIdOf(runId));
    if (child === undefined) throw new Error(`there is no child ${runId}`);
    return child;
  }

  async startSubagent(request: SubagentRequest): Promise<SubagentStarted> {
    const child = new FakeChild(request);
    this.children.set(jobIdOf(request.runId), child);
    return await this.onStart(request);
  }

  async awaitSubagent(_owner: string, runId: string, seq: number) {
    const child = this.children.get(jobIdOf(runId));
    if (child === undefined) return { ok: false, code: 'NOT_FOUND' } as const;
    return { ok: true, value: await child.news(seq) } as const;
  }

  async cancelSubagent(_owner: string, runId: string): Promise<void> {
    const child = this.child(runId);
    child.cancelled = true;
    if (!child.deaf) child.ends({ stopReason: 'aborted' });
  }

  async answerSubagent(_owner: string, runId: string, questionId: string, allow: boolean): Promise<void> {
    this.child(runId).answer(questionId, allow);
  }

  async disposeSubagent(_owner: string, runId: string): Promise<void> {
    this.child(runId).disposed = true;
    await this.onDispose();
  }

  async countSubagents(): Promise<number> {
    return [...this.children.values()].filter((child) => !child.disposed).length;
  }
}

export class RunsRig {
  readonly agents = new FakeAgents();
  readonly events: EventInput[] = [];
  readonly notices: string[] = [];
  readonly charged: SubagentUsage[] = [];
  readonly runs: SubagentRuns;
  readonly abort = new AbortController();
  #calls = 0;

  constructor(parts: Partial<SubagentRunsParts> = {}) {
    this.runs = new SubagentRuns({
      sessionId: 'parent',
      cwd: '/work',
      spillDir: '/spill',
      depth: 0,
      providers: [provider('self')],
      apiOf: () => this.agents,
      turn: () => 1,
      mode: () => 'ask',
      record: (event) => this.events.push(event),
      chargeUsage: (usage) => this.charged.push(usage),
      notice: (text) => this.notices.push(text),
      ask: async () => false,
      ...parts,
    });
  }

  start(
    more: { readonly background?: boolean; readonly description?: string; readonly provider?: string; readonly signal?: AbortSignal } = {},
  ) {
    this.#calls += 1;
    return this.runs.start({
      callId: `call-${this.#calls}`,
      provider: 'self',
      description: 'Look around',
      prompt: 'Look around and tell.',
      background: false,
      left: {},
      signal: this.abort.signal,
      ...more,
    });
  }

  logged<T extends EventInput['type']>(type: T): EventData[T][] {
    return this.events.filter((event) => event.type === type).map((event) => event.data as EventData[T]);
  }
}
