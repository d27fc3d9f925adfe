/**
 * Runs the calls of one answer: neighbours that are parallel-safe together, anything else alone, and logs their results
 * in call order whatever order they end in.
 *
 * Once the turn has ended nothing more is started; what was not started is closed by the turn's end.
 */
import { bytesPerChar } from '../memory/session-memory.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import type { AgentContext } from './agent-context.ts';
import { type AllowedCall, type PlannedCall, spentText } from './tool-calls.ts';
import { runTool } from './tool-run.ts';
import type { TurnScope } from './turn-scope.ts';

/**
 * Fulfils when every started call has its result in the log.
 *
 * @throws ServerError LOG_WRITE_FAILED, after the calls that were running have settled
 */
export async function runCalls(context: AgentContext, scope: TurnScope, step: number, calls: readonly PlannedCall[]): Promise<void> {
  const results = new OrderedResults(scope, step, calls);
  const letGo = context.memory.hold('results', () => results.waitingBytes);
  try {
    for (let start = 0; start < calls.length; ) {
      const end = groupEnd(calls, start);
      await runGroup(context, scope, { step, calls, start, end, results });
      start = end;
    }
  } finally {
    letGo();
  }
}

interface CallGroup {
  readonly step: number;
  readonly calls: readonly PlannedCall[];
  readonly start: number;
  /** One past the last. */
  readonly end: number;
  readonly results: OrderedResults;
}

/** Each lane takes the next call that is free, so calls start in order and at most the cap of them run; none once the turn has ended. */
async function runGroup(context: AgentContext, scope: TurnScope, group: CallGroup): Promise<void> {
  let next = group.start;
  const lane = async () => {
    while (next < group.end && !scope.ended) {
      const index = next;
      next += 1;
      await runPlanned(context, scope, group, index);
    }
  };
  const lanes = Math.min(Math.max(1, context.settings.maxParallelToolCalls), group.end - group.start);
  const settled = await Promise.allSettled(Array.from({ length: lanes }, lane));
  const failed = settled.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

async function runPlanned(context: AgentContext, scope: TurnScope, group: CallGroup, index: number): Promise<void> {
  const call = group.calls[index];
  if (call === undefined) return;
  const { callId, name } = call.request;
  // Before the permission is asked: the client must know the card the question is about.
  scope.record({ type: 'tool/call', data: { turn: scope.turn, step: group.step, callId, name, arguments: call.request.arguments } });
  const outcome = call.refusal ?? (await dispatch(context, scope, group.step, call));
  group.results.settle(index, outcome);
}

/** Runs the call unless a budget was spent meanwhile, by the answer itself or by another call. A final answer costs nothing. */
async function dispatch(context: AgentContext, scope: TurnScope, step: number, call: AllowedCall): Promise<ToolOutcome> {
  const { finalAnswer } = context.tools;
  const isFinal = call.tool === finalAnswer?.tool;
  const spent = isFinal ? undefined : scope.limits.spentInStep();
  if (spent !== undefined) return { text: spentText(spent), isError: true, code: 'BUDGET_SPENT' };
  const { request, tool, args } = call;
  const outcome = await runTool(context, scope, { step, callId: request.callId, tool, args });
  if (isFinal && !outcome.isError) scope.structured = { value: finalAnswer.valueOf(args) };
  return outcome;
}

/** One past the calls that may run together from `start` on. A refused call runs nothing, so it joins any group. */
function groupEnd(calls: readonly PlannedCall[], start: number): number {
  let end = start;
  while (end < calls.length && mayShare(calls[end])) end += 1;
  return Math.max(end, start + 1);
}

function mayShare(call: PlannedCall | undefined): boolean {
  return call !== undefined && (call.refusal !== undefined || call.parallel);
}

/** Holds a result back until all before it are logged. */
class OrderedResults {
  readonly #scope: TurnScope;
  readonly #step: number;
  readonly #calls: readonly PlannedCall[];
  readonly #waiting = new Map<number, ToolOutcome>();
  #next = 0;
  /** Of the results that wait for an earlier one. */
  waitingBytes = 0;

  constructor(scope: TurnScope, step: number, calls: readonly PlannedCall[]) {
    this.#scope = scope;
    this.#step = step;
    this.#calls = calls;
  }

  settle(index: number, outcome: ToolOutcome): void {
    this.#waiting.set(index, outcome);
    if (index !== this.#next) this.waitingBytes += outcomeBytes(outcome);
    for (let ready = this.#waiting.get(this.#next); ready !== undefined; ready = this.#waiting.get(this.#next)) {
      const call = this.#calls[this.#next];
      if (call !== undefined) this.#log(call.request.callId, ready);
      this.#waiting.delete(this.#next);
      this.#next += 1;
    }
    if (this.#waiting.size === 0) this.waitingBytes = 0;
  }

  #log(callId: string, outcome: ToolOutcome): void {
    const { text, isError, code, meta } = outcome;
    const data = { turn: this.#scope.turn, step: this.#step, callId, text, isError };
    this.#scope.record({
      type: 'tool/result',
      data: { ...data, ...(code === undefined ? {} : { code }), ...(meta === undefined ? {} : { meta }) },
    });
  }
}

function outcomeBytes({ text, meta }: ToolOutcome): number {
  return bytesPerChar * (text.length + (meta === undefined ? 0 : JSON.stringify(meta).length));
}
