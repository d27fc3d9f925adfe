/**
 * The session of one try at a job: made, given its prompts one after another, closed. Never throws for what the agent does; what
 * went wrong is part of what it came to.
 */
import { methods, type NewSessionResponse, type RequestPermissionRequest, type RequestPermissionResponse } from '@agentclientprotocol/sdk';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonValue } from '../../../shared/errors.ts';
import type { PermissionMode } from '../../../shared/events.ts';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import type { Attempt } from '../job.ts';
import type { JobUsage } from '../job-result.ts';
import { addCost, addUsage, costOfUpdate, membersOf, modelOfSession, readErrorUsage, readTurnAnswer } from './agent-answer.ts';
import type { AgentConnection } from './agent-connection.ts';
import { AgentFault, toAgentFault } from './agent-fault.ts';
import type { RawUpdate } from './agent-stream.ts';
import { LateUpdates } from './late-updates.ts';
import { answerPermission, isGrant } from './permission-answer.ts';
import { keepsBudget, newSessionMeta, promptMeta } from './session-options.ts';
import { TurnLimit } from './turn-limit.ts';
import { boundText, TurnText } from './turn-text.ts';

/** From a cancel to the moment when an agent that does not answer is given up. */
const cancelPatienceMs = 10_000;
const setModeLimitMs = 30_000;

/** What holds for jobs that do not say otherwise. */
export interface SessionDefaults {
  /** Asked of the agent; `undefined` leaves it to the agent. */
  readonly mode: PermissionMode | undefined;
  /** By which the runner answers an agent that is not this program, where no mode is asked of it. */
  readonly answerMode: PermissionMode;
  /** Holds beside a job's own, for an agent that is not this program. */
  readonly policy: PolicyRules | undefined;
}

export interface SessionPlan {
  readonly attempt: Attempt;
  readonly cwd: string;
  readonly defaults: SessionDefaults;
  /** Ends the session's turn. */
  readonly signal: AbortSignal;
  /** A permission that the agent asked for was not granted. */
  readonly onRefused: () => void;
  readonly onProgress: (chars: number) => void;
  readonly onTurn: (turn: number, usage: JobUsage | undefined, costUsd: number | undefined) => void;
}

/** What a session came to. */
export interface SessionEnd {
  /** Of the last turn that was answered. */
  readonly stopReason: string | undefined;
  readonly text: string;
  readonly structured: JsonValue | undefined;
  /** As the agent named it when the session was made. */
  readonly model: string | undefined;
  readonly usage: JobUsage | undefined;
  readonly costUsd: number | undefined;
  /** Whether the agent showed a tool call, or counted one. */
  readonly toolsSeen: boolean;
  /** Whether a prompt was sent. */
  readonly prompted: boolean;
  readonly turnsMs: number;
  readonly firstUpdateMs: number | undefined;
  readonly sessionId: string | undefined;
  /** A limit that the runner itself had to keep ended the turn. */
  readonly limited: boolean;
  readonly fault: AgentFault | undefined;
}

export class JobSession {
  readonly #connection: AgentConnection;
  readonly #plan: SessionPlan;
  readonly #text = new TurnText();
  readonly #late = new LateUpdates();
  #sessionId: string | undefined;
  #stopReason: string | undefined;
  #structured: JsonValue | undefined;
  #model: string | undefined;
  #answerText: string | undefined;
  #usage: JobUsage | undefined;
  #costUsd: number | undefined;
  #shownCostUsd: number | undefined;
  #toolCalls = 0;
  #promptedAt: number | undefined;
  #firstUpdateMs: number | undefined;

  constructor(connection: AgentConnection, plan: SessionPlan) {
    this.#connection = connection;
    this.#plan = plan;
  }

  async run(): Promise<SessionEnd> {
    let fault: AgentFault | undefined;
    const limit = new TurnLimit(this.#plan.attempt.job.budget, keepsBudget(this.#connection));
    const start = performance.now();
    let turnsStart = start;
    try {
      await this.#open();
      turnsStart = performance.now();
      await this.#turns(limit);
    } catch (error) {
      fault = toAgentFault(error, () => (error instanceof Error ? error.message : String(error)));
      const { usage, costUsd } = readErrorUsage(fault.data);
      this.#usage = addUsage(this.#usage, usage);
      this.#costUsd = addCost(this.#costUsd, costUsd);
    } finally {
      limit.end();
    }
    const turnsMs = performance.now() - turnsStart;
    if (this.#sessionId !== undefined) {
      await this.#connection.close(this.#sessionId);
      this.#connection.forget(this.#sessionId);
    }
    return this.#end(limit, turnsMs, fault);
  }

  #end(limit: TurnLimit, turnsMs: number, fault: AgentFault | undefined): SessionEnd {
    const shown = this.#toolCalls > 0 && this.#usage !== undefined && this.#usage.toolCalls === 0;
    return {
      stopReason: this.#stopReason,
      text: this.#answerText ?? this.#text.text(),
      structured: this.#structured,
      model: this.#model,
      // Agents that count tokens do not count their calls.
      usage: shown && this.#usage !== undefined ? { ...this.#usage, toolCalls: this.#toolCalls } : this.#usage,
      costUsd: this.#costUsd ?? this.#shownCostUsd,
      toolsSeen: this.#toolCalls > 0 || (this.#usage?.toolCalls ?? 0) > 0,
      prompted: this.#promptedAt !== undefined,
      turnsMs,
      firstUpdateMs: this.#firstUpdateMs,
      sessionId: this.#sessionId,
      limited: limit.isOver,
      fault,
    };
  }

  async #open(): Promise<void> {
    const { attempt, cwd, defaults } = this.#plan;
    const mode = attempt.job.mode ?? defaults.mode;
    const opened = await this.#connection.newSession(cwd, newSessionMeta(this.#connection, attempt, { mode, policy: defaults.policy }));
    if (typeof opened?.sessionId !== 'string') {
      throw new AgentFault('agent', 'it answered session/new without a sessionId', { retryable: false });
    }
    this.#sessionId = opened.sessionId;
    this.#model = modelOfSession(opened);
    this.#connection.listen(opened.sessionId, {
      onUpdate: (update) => this.#onUpdate(update),
      decide: (request) => this.#decide(request),
    });
    await this.#setMode(opened, mode);
  }

  #decide(request: RequestPermissionRequest): RequestPermissionResponse {
    const { attempt, cwd, defaults, signal, onRefused } = this.#plan;
    if (signal.aborted) return { outcome: { outcome: 'cancelled' } };
    const policies = [attempt.job.policy, defaults.policy].filter((policy) => policy !== undefined);
    // This server knows mode and policy, and asks only what a person has to decide: nobody is here.
    const rules = this.#connection.isOwn
      ? { policies: [denyAll], mode: 'ask' as const, cwd }
      : { policies, mode: attempt.job.mode ?? defaults.mode ?? defaults.answerMode, cwd };
    const answer = answerPermission(request, rules);
    if (!isGrant(answer, request)) onRefused();
    return answer;
  }

  /** For an agent that takes no mode with `session/new`, but has modes of that name. */
  async #setMode({ sessionId, modes }: NewSessionResponse, mode: PermissionMode | undefined): Promise<void> {
    if (mode === undefined || this.#connection.understands(methods.agent.session.new, 'mode')) return;
    if (modes === undefined || modes === null || modes.currentModeId === mode) return;
    if (!modes.availableModes.some(({ id }) => id === mode)) return;
    await this.#connection.request(methods.agent.session.setMode, { sessionId, modeId: mode }, setModeLimitMs);
  }

  async #turns(limit: TurnLimit): Promise<void> {
    for (const [turn, text] of this.#plan.attempt.job.prompts.entries()) {
      if (this.#plan.signal.aborted || limit.isOver) return;
      this.#text.clear();
      this.#answerText = undefined;
      this.#promptedAt ??= performance.now();
      const answer = readTurnAnswer(await this.#prompt(text, turn, limit));
      if (!this.#connection.isOwn) await this.#late.settle();
      this.#stopReason = answer.stopReason;
      this.#structured = answer.structured;
      this.#answerText = answer.text === undefined ? undefined : boundText(answer.text);
      this.#usage = addUsage(this.#usage, answer.usage);
      this.#costUsd = addCost(this.#costUsd, answer.costUsd);
      this.#plan.onTurn(turn, answer.usage, answer.costUsd);
      if (answer.stopReason === undefined) throw new AgentFault('agent', 'it answered a prompt without a stopReason', { retryable: false });
      if (answer.stopReason !== 'end_turn') return;
    }
  }

  /** The prompt's answer. A cancel, or the runner's own limit, is asked for once; an agent that does not follow is given up. */
  async #prompt(text: string, turn: number, limit: TurnLimit): Promise<unknown> {
    const sessionId = this.#sessionId ?? '';
    const meta = promptMeta(this.#connection, this.#plan.attempt, turn);
    const params = { sessionId, prompt: [{ type: 'text', text }], ...(meta === undefined ? {} : { _meta: { 'dsh-acp': meta } }) };
    const answered = new AbortController();
    const answer = this.#connection.request<unknown>(methods.agent.session.prompt, params, undefined);
    const giveUp = new Promise<never>((_, reject) => {
      const cancel = async (): Promise<void> => {
        this.#connection.cancel(sessionId);
        await delay(cancelPatienceMs, undefined, { signal: answered.signal });
        reject(new AgentFault('agent', `it did not end its turn within ${cancelPatienceMs} ms of a cancel`, { retryable: false }));
      };
      const begin = (): void => void cancel().catch(() => undefined);
      // Not AbortSignal.any: each would stay with the run's own signal for good.
      for (const stop of [this.#plan.signal, limit.signal]) {
        if (stop.aborted) begin();
        else stop.addEventListener('abort', begin, { once: true, signal: answered.signal });
      }
    });
    try {
      return await Promise.race([answer, giveUp]);
    } finally {
      // With a reason of its own: the default one costs an exception for each turn.
      answered.abort('answered');
      // The answer of one that was given up may still fail, with its connection.
      answer.catch(() => undefined);
    }
  }

  #onUpdate(update: RawUpdate['update']): void {
    this.#late.seen();
    if (this.#promptedAt === undefined) return;
    this.#firstUpdateMs ??= performance.now() - this.#promptedAt;
    switch (update['sessionUpdate']) {
      case 'agent_message_chunk': {
        const { type, text } = membersOf(update['content']);
        if (type !== 'text' || typeof text !== 'string') return;
        this.#text.push(text);
        this.#plan.onProgress(text.length);
        return;
      }
      case 'agent_thought_chunk': {
        const { text } = membersOf(update['content']);
        if (typeof text === 'string') this.#plan.onProgress(text.length);
        return;
      }
      case 'tool_call':
        this.#toolCalls += 1;
        this.#text.toolCall();
        return;
      case 'usage_update':
        this.#shownCostUsd = costOfUpdate(update) ?? this.#shownCostUsd;
        return;
      default:
    }
  }
}

const denyAll: PolicyRules = { rules: [], fallback: 'deny' };
