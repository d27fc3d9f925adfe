/**
 * From the calls a model made to calls that may run: ids made unique, sizes bounded, arguments checked. A call that may
 * not run carries the result the model gets instead, and its body is never reached.
 */
import type { ToolCallRequest } from '../../shared/events.ts';
import type { AnyTool, ToolOutcome } from '../tools/tool.ts';
import type { AgentContext } from './agent-context.ts';
import { type Limit, limitWords } from './budget.ts';
import { freeCallId, inventedId } from './call-names.ts';
import { headOf } from './pruned-text.ts';
import type { TurnScope } from './turn-scope.ts';

/** Calls in one answer beyond this are refused. */
export const mostCallsPerAnswer = 64;
/** Calls in one answer beyond this are not even logged: the answer is a runaway. */
const mostCallsKept = 512;
const longestToolName = 128;

export interface AllowedCall {
  readonly request: ToolCallRequest;
  readonly refusal?: undefined;
  readonly tool: AnyTool;
  readonly args: unknown;
  readonly parallel: boolean;
}

export type PlannedCall = { readonly request: ToolCallRequest; readonly refusal: ToolOutcome } | AllowedCall;

/**
 * The calls with ids unique within the session: those that they were shown under, by the model's own, or else free ones.
 */
export function uniqueCalls(
  context: AgentContext,
  scope: TurnScope,
  calls: readonly ToolCallRequest[],
  shown: ReadonlyMap<string, string>,
): ToolCallRequest[] {
  const seen = new Set<string>();
  const taken = (id: string): boolean => seen.has(id) || context.history.hasCall(id) || context.shownCalls.has(id);
  return calls.slice(0, mostCallsKept).map((call, index) => {
    const known = shown.get(call.callId);
    const callId = known !== undefined && !seen.has(known) ? known : freeCallId(call.callId, inventedId(scope, index), taken);
    seen.add(callId);
    return { callId, name: headOf(call.name, longestToolName), arguments: call.arguments };
  });
}

/** Decides for every call whether it may run, in call order, and counts it. */
export function planCalls(context: AgentContext, scope: TurnScope, requests: readonly ToolCallRequest[]): PlannedCall[] {
  return requests.map((request, index) => {
    if (index >= mostCallsPerAnswer) {
      const text = `Error: not run. One answer may make at most ${mostCallsPerAnswer} tool calls, and this one made ${requests.length}.`;
      return { request, refusal: refuse('TOO_MANY_CALLS', text) };
    }
    // The final answer is no tool call to a budget, which would else end work that is done.
    const free = request.name === context.tools.finalAnswer?.tool.name;
    const spent = free ? undefined : scope.limits.spentToolCalls();
    if (spent !== undefined) return { request, refusal: refuse('TOOL_CALL_BUDGET', spentText(spent)) };
    if (!free) scope.usage.toolCalls += 1;
    return planCall(context, request);
  });
}

/** For an answer that was cut off: its arguments may be incomplete even where they parse. */
export function truncatedCalls(requests: readonly ToolCallRequest[]): PlannedCall[] {
  const text = 'Error: not run, because the answer was cut off and the arguments may be incomplete. Call again with less output.';
  return requests.map((request) => ({ request, refusal: refuse('ARGUMENTS_TRUNCATED', text) }));
}

/** What the model reads for a call that a budget has no room for. */
export function spentText({ name, scope }: Limit): string {
  return `Error: not run, because the limit of ${limitWords[name]} of this ${scope} is used up.`;
}

function planCall(context: AgentContext, request: ToolCallRequest): PlannedCall {
  const tool = context.tools.get(request.name);
  if (tool === undefined) {
    const names = context.tools.schemas().map((schema) => schema.name);
    const text = `Error: there is no tool named "${request.name}". The tools are: ${names.join(', ')}.`;
    return { request, refusal: refuse('UNKNOWN_TOOL', text) };
  }
  const parsed = context.tools.parseArguments(request.name, request.arguments);
  if (!parsed.ok) return { request, refusal: refuse(parsed.code, parsed.text) };
  return { request, tool, args: parsed.args, parallel: isParallelSafe(tool, parsed.args) };
}

function isParallelSafe(tool: AnyTool, args: unknown): boolean {
  try {
    return tool.isParallelSafe(args);
  } catch {
    return false; // A tool that cannot say runs alone.
  }
}

function refuse(code: string, text: string): ToolOutcome {
  return { text, isError: true, code };
}
