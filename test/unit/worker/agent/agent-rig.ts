/**
 * An agent among stand-ins that a test can steer: a scripted model, a log in memory that checks what it is told, tools
 * and a clock that moves only when the test says so.
 */
import assert from 'node:assert/strict';
import type { BrokerApi } from '../../../../src/shared/broker-protocol.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import type { EventData, EventInput, EventType, LogEvent, ToolCallRequest } from '../../../../src/shared/events.ts';
import type { SubagentUsage } from '../../../../src/shared/subagent-protocol.ts';
import type { AgentDependencies, NextDelay, ParsedArguments } from '../../../../src/worker/agent/agent-context.ts';
import { History } from '../../../../src/worker/agent/history.ts';
import type { Journal } from '../../../../src/worker/agent/journal.ts';
import { openSlots } from '../../../../src/worker/agent/model-slots.ts';
import { ReactLoopAgent } from '../../../../src/worker/agent/react-loop-agent.ts';
import {
  type ModelEvent,
  ModelFailure,
  type ModelFailureCode,
  type ModelFinish,
  type ModelRequest,
  type StreamOptions,
} from '../../../../src/worker/model/model-adapter.ts';
import type { PermissionDecision } from '../../../../src/worker/permission/permission-gate.ts';
import { FileObservations } from '../../../../src/worker/tools/file-observations.ts';
import type { AnyTool, ToolContext, ToolOutcome } from '../../../../src/worker/tools/tool.ts';
import { assertLegalLog } from './legal-log.ts';

export interface ModelTurn {
  request: ModelRequest;
  sink: (event: ModelEvent) => void;
  options: StreamOptions;
  rig: AgentRig;
}
export type Reply = (turn: ModelTurn) => Promise<ModelFinish>;

export const usage = (inputTokens: number, outputTokens: number) => ({ inputTokens, outputTokens, cacheReadTokens: 0, reasoningTokens: 0 });

/** Streams the text in words, then finishes. */
export function say(text: string, finish: Partial<ModelFinish> = {}): Reply {
  return async ({ sink, rig, options }) => {
    for (const word of text.split(/(?<= )/)) {
      await rig.point('delta');
      if (options.signal.aborted) throw new ModelFailure('ABORTED', 'aborted');
      if (word !== '') sink({ type: 'text', text: word });
    }
    await rig.point('finish');
    return { reason: 'stop', toolCalls: [], ...finish };
  };
}

export function call(...calls: [name: string, args: unknown, callId?: string][]): Reply {
  const toolCalls = calls.map(([name, args, callId = '']): ToolCallRequest => {
    return { callId, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) };
  });
  return say('on it', { reason: 'tool-calls', toolCalls });
}

export function fail(code: ModelFailureCode, text = ''): Reply {
  return async (turn) => {
    if (text !== '') turn.sink({ type: 'text', text });
    await turn.rig.point('model failure');
    throw new ModelFailure(code, `model said ${code}`);
  };
}

/** Streams a text, then waits until it is aborted. */
export function hang(text = ''): Reply {
  return async ({ sink, options, rig }) => {
    if (text !== '') sink({ type: 'text', text });
    rig.hanging += 1;
    await new Promise<void>((resolve) => {
      if (options.signal.aborted) resolve();
      else options.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    rig.hanging -= 1;
    throw new ModelFailure('ABORTED', 'aborted');
  };
}

/** The clock on the wall when a rig's own clock stands at 0. */
export const epoch = 1_800_000_000_000;

export interface Sleeper {
  readonly ms: number;
  readonly wake: () => void;
}

type Settings = AgentDependencies['settings'];

export interface RigOptions {
  settings?: Partial<Settings>;
  budget?: Partial<Settings['budget']>;
  contextWindow?: number;
  takesImages?: boolean;
  nextDelay?: NextDelay;
  tools?: AnyTool[];
  options?: AgentDependencies['options'];
  modelSlots?: AgentDependencies['modelSlots'];
  whenWritable?: AgentDependencies['whenWritable'];
  decide?: (callId: string, signal: AbortSignal) => Promise<PermissionDecision>;
  /** Which waits end at once; the others end when the test wakes them. */
  instant?: (ms: number) => boolean;
}

export class AgentRig {
  readonly events: LogEvent[] = [];
  readonly deltas: EventData['assistant/chunk'][] = [];
  readonly requests: ModelRequest[] = [];
  readonly sleepers = new Set<Sleeper>();
  readonly permissionsAsked: string[] = [];
  readonly script: Reply[] = [];
  readonly points: string[] = [];
  readonly violations: unknown[] = [];
  readonly agent: ReactLoopAgent;
  readonly running = { now: 0, most: 0 };
  hanging = 0;
  time = 0;
  onPoint: (count: number) => void = () => {};
  /** Says whether the log refuses this event. */
  refuse: (event: EventInput) => boolean = () => false;
  refuseBarrier: () => boolean = () => false;
  refuseDelta = false;
  #ids = 0;
  #onDisk = -1;
  /** What is on the disk soon, without anybody waiting. */
  #promised = -1;
  readonly #options: RigOptions;

  constructor(script: Reply[] = [], options: RigOptions = {}) {
    this.script.push(...script);
    this.#options = options;
    this.agent = new ReactLoopAgent(this.dependencies());
  }

  /** Logs an event past the agent, as whoever runs subagents does, and charges what its child has used. */
  subagentEnded(callId: string, childUsage: SubagentUsage): void {
    const data = { callId, runId: callId, stopReason: 'completed' as const, durationMs: 1, usage: childUsage };
    this.events.push({ type: 'subagent/end', data, seq: this.events.length, time: this.time });
    this.agent.addSubagentUsage(childUsage);
  }

  /** A rig whose agent was made from this one's log. */
  reopened(script: Reply[] = [], options: RigOptions = this.#options): AgentRig {
    const rig = new AgentRig(script, options);
    for (const event of this.events) {
      rig.events.push(event);
      rig.agent.observe(event);
    }
    rig.time = this.time;
    return rig;
  }

  /** What the program told the model by itself. */
  get notices(): string[] {
    return this.of('user/message').flatMap(({ source, content }) =>
      source === 'notice' ? content.map((block) => ('text' in block ? block.text : '')) : [],
    );
  }

  /** Called at every await of the stand-ins; a test hooks in here to act at any of these moments. */
  async point(name: string): Promise<void> {
    this.points.push(name);
    this.onPoint(this.points.length);
    await Promise.resolve();
  }

  of<T extends EventType>(type: T): EventData[T][] {
    return this.events.filter((event) => event.type === type).map((event) => event.data as EventData[T]);
  }

  get types(): string[] {
    return this.events.map((event) => event.type);
  }

  /** Waits without a clock; fails when the condition does not come true by the loop's own steps. */
  async until(condition: () => boolean, what = 'condition'): Promise<void> {
    for (let i = 0; i < 2000; i += 1) {
      if (condition()) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
    throw new Error(`never came: ${what}; events: ${this.types.join(' ')}`);
  }

  /** Wakes everyone who sleeps for exactly `ms`. */
  wake(ms: number): void {
    this.time += ms;
    for (const sleeper of this.sleepers) if (sleeper.ms === ms) sleeper.wake();
  }

  replayed(): History {
    const history = new History();
    for (const event of this.events) history.apply(event);
    return history;
  }

  dependencies(): AgentDependencies {
    const tools = new Map((this.#options.tools ?? []).map((tool) => [tool.name, this.#watched(tool)]));
    return {
      sessionId: 'session-1',
      cwd: '/work',
      model: {
        provider: 'test',
        model: 'scripted',
        contextWindow: this.#options.contextWindow ?? 1_000_000,
        takesImages: this.#options.takesImages ?? false,
        stream: async (request, sink, options) => {
          this.#check(() => {
            const soon = Math.max(this.#onDisk, this.#promised);
            assert.equal(soon, this.events.length - 1, 'what a model request says is soon on the disk');
          });
          this.#check(() => assert.equal(options.signal.aborted, false, 'no request starts after the end of the turn'));
          const last = request.messages.at(-1);
          const summarizing = last?.role === 'user' && last.text.startsWith('Write a summary');
          if (!summarizing)
            this.#check(() => assert.deepEqual(request.messages, this.replayed().messages(), 'the model sees what the log says'));
          this.requests.push(request);
          const reply = this.script.shift() ?? say('nothing more to say');
          return reply({ request, sink, options, rig: this });
        },
      },
      tools: {
        get: (name) => tools.get(name),
        schemas: () => [...tools.values()].map(({ name, description, parameters }) => ({ name, description, parameters })),
        hash: () => [...tools.keys()].join(),
        parseArguments: (_name, raw) => parse(raw),
      },
      journal: this.#journal(),
      permissions: {
        decide: async ({ callId }, signal) => {
          this.permissionsAsked.push(callId);
          this.#check(() => assert.equal(signal.aborted, false, 'nothing is asked after the end of the turn'));
          const known = this.of('tool/call').some((event) => event.callId === callId);
          this.#check(() => assert.ok(known, 'the card is known before the question'));
          const started = this.of('tool/start').some((event) => event.callId === callId);
          this.#check(() => assert.ok(!started, 'no call starts before its permission'));
          await this.point('permission');
          if (this.#options.decide !== undefined) return this.#options.decide(callId, signal);
          return signal.aborted ? { allowed: false, code: 'PERMISSION_CANCELLED', text: 'Error: cancelled' } : { allowed: true };
        },
      },
      toolParts: { broker: {} as BrokerApi, files: new FileObservations(), spillDir: '/spill' },
      settings: {
        systemPrompt: 'Be brief.',
        maxParallelToolCalls: 10,
        commandTimeoutMs: 1000,
        ripgrepPath: undefined,
        prices: undefined,
        ...this.#options.settings,
        budget: { maxSteps: 0, maxToolCalls: 0, maxTokens: 0, maxWallMs: 0, maxCostUsd: 0, ...this.#options.budget },
      },
      nextDelay: this.#options.nextDelay ?? (() => undefined),
      maxAttempts: 3,
      whenWritable: this.#options.whenWritable ?? (() => undefined),
      newId: () => {
        this.#ids += 1;
        return `m${this.#ids}`;
      },
      now: () => this.time,
      wallClock: () => epoch + this.time,
      options: this.#options.options ?? {},
      modelSlots: this.#options.modelSlots ?? openSlots,
      random: () => 0.5,
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
  }

  /** Checks that the start of the call is on the disk. */
  #assertDurable(callId: string): void {
    const seq = this.events.findIndex((event) => event.type === 'tool/start' && event.data.callId === callId);
    this.#check(() => assert.ok(seq >= 0 && seq <= this.#onDisk, 'a barrier stands between tool/start and the body'));
  }

  /** The tool, insisting that no body begins before its start is on the disk. */
  #watched(watched: AnyTool): AnyTool {
    const execute: AnyTool['execute'] = (args, context) => {
      this.#assertDurable(context.callId);
      return watched.execute(args, context);
    };
    return { ...watched, execute };
  }

  /** The agent takes whatever is thrown at it, so a broken promise must be kept apart from its turns. */
  #check(assertion: () => void): void {
    try {
      assertion();
    } catch (error) {
      this.violations.push(error);
    }
  }

  /** Fails with the first promise that the agent broke towards its stand-ins. */
  assertKept(): void {
    for (const violation of this.violations) throw violation;
  }

  #journal(): Journal {
    return {
      append: (event) => this.#append([event])[0]!,
      appendAll: (events) => this.#append(events),
      delta: (chunk) => {
        if (this.refuseDelta) throw new ServerError('LOG_WRITE_FAILED', 'no space left');
        this.deltas.push(chunk);
      },
      syncSoon: () => {
        this.#promised = this.events.length - 1;
      },
      barrier: async () => {
        const through = this.events.length - 1;
        await this.point('barrier');
        if (this.refuseBarrier()) throw new ServerError('LOG_WRITE_FAILED', 'no space left');
        this.#onDisk = through;
      },
    };
  }

  #append(events: readonly EventInput[]): LogEvent[] {
    const before = this.events.length;
    for (const event of events) {
      if (this.refuse(event)) {
        // All of them or none.
        this.events.length = before;
        throw new ServerError('LOG_WRITE_FAILED', 'no space left');
      }
      this.events.push(structuredClone({ ...event, seq: this.events.length, time: this.time }) as LogEvent);
    }
    return this.events.slice(before);
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    if (this.#options.instant?.(ms) === true) {
      await this.point('sleep');
      return;
    }
    await new Promise<void>((resolve) => {
      const sleeper: Sleeper = {
        ms,
        wake: () => {
          this.sleepers.delete(sleeper);
          resolve();
        },
      };
      this.sleepers.add(sleeper);
      signal.addEventListener('abort', sleeper.wake, { once: true });
    });
  }
}

function parse(raw: string): ParsedArguments {
  try {
    const args: unknown = JSON.parse(raw === '' ? '{}' : raw);
    if (typeof args === 'object' && args !== null && !('bad' in args)) return { ok: true, args };
    return { ok: false, code: 'INVALID_ARGS', text: 'Error: wrong arguments' };
  } catch {
    return { ok: false, code: 'INVALID_ARGS', text: 'Error: broken JSON' };
  }
}

/** The log is legal, and the agent kept every promise to its stand-ins. */
export function assertLegal(rig: AgentRig, options: { open?: boolean } = {}): void {
  rig.assertKept();
  assertLegalLog(rig.events, options);
}

export const prompt = (text: string) => [{ type: 'text' as const, text }];

export function tool(
  name: string,
  body: (args: { text?: string }, context: ToolContext) => Promise<ToolOutcome>,
  parallel = false,
): AnyTool {
  return {
    name,
    description: name,
    parameters: { type: 'object' },
    isParallelSafe: () => parallel,
    access: () => ({ kind: 'none' }),
    execute: (args, context) => body(args as { text?: string }, context),
    presentCall: () => ({ card: 'generic', title: name }),
    presentResult: () => ({ card: 'generic' }),
  };
}
