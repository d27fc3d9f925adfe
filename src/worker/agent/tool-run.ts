/**
 * One tool call, from the permission to its outcome. Never rejects: whatever happens becomes the result the model reads.
 */
import type { JsonValue } from '../../shared/errors.ts';
import type { EventInput } from '../../shared/events.ts';
import type { CommandBounds } from '../permission/permission-gate.ts';
import type { AnyTool, ToolAccess, ToolContext, ToolOutcome } from '../tools/tool.ts';
import type { AgentContext } from './agent-context.ts';
import { headOf, prunedText } from './pruned-text.ts';
import { abandoned, settleOrAbandon, stopGraceMs } from './settle-or-abandon.ts';
import type { TurnScope } from './turn-scope.ts';

export interface RunnableCall {
  readonly step: number;
  readonly callId: string;
  readonly tool: AnyTool;
  readonly args: unknown;
}

/** Results are cut to this, in characters. Tools have tighter limits of their own. */
const longestResult = 256 * 1024;
const longestErrorText = 2000;
const longestMeta = 4 * 1024 * 1024;

/** Ends at the latest {@link stopGraceMs} after the turn's signal aborts; what the body does later is dropped. */
export async function runTool(context: AgentContext, scope: TurnScope, call: RunnableCall): Promise<ToolOutcome> {
  const life = { over: false };
  const outcome = await settleOrAbandon(checkAndExecute(context, scope, call, life), scope.signal, context.sleep);
  life.over = true;
  if (outcome !== abandoned) return outcome;
  const text = `Error: the call did not stop within ${stopGraceMs} ms of being cancelled. Check what it did before you repeat it.`;
  return { text, isError: true, code: 'TOOL_ABANDONED' };
}

async function checkAndExecute(context: AgentContext, scope: TurnScope, call: RunnableCall, life: { over: boolean }): Promise<ToolOutcome> {
  try {
    const permission = await askPermission(context, scope, call);
    if ('text' in permission) return permission;
    if (scope.ended) return notRun;
    const unlogged = await logStart(scope, call);
    if (unlogged !== undefined) return unlogged;
    if (scope.ended) return notRun;
    const execute = () => call.tool.execute(call.args, toolContext(context, scope, call, { life, bounds: permission.bounds }));
    return bounded(await watched(context, scope, call, execute));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { text: `Error: ${headOf(text, longestErrorText)}`, isError: true, code: 'TOOL_FAILED' };
  }
}

/** What the call is allowed with, or the outcome that takes its place. */
async function askPermission(
  context: AgentContext,
  scope: TurnScope,
  call: RunnableCall,
): Promise<ToolOutcome | { readonly bounds: CommandBounds }> {
  const { tool, args, callId } = call;
  // It is the answer and not an act: to refuse it would refuse all work of the session.
  if (tool === context.tools.finalAnswer?.tool) return { bounds: {} };
  const { cwd } = context;
  const access = tool.access(args, { cwd });
  const view = tool.presentCall(args, { cwd });
  // Arguments come from JSON.parse, so they are JSON values.
  const question = { turn: scope.turn, callId, toolName: tool.name, access, view, rawInput: args as JsonValue };
  try {
    const decision = await context.permissions.decide(question, scope.signal);
    if (decision.allowed && worksOnTheDisk(access)) context.toolParts.editor?.noteWork();
    return decision.allowed ? { bounds: boundsOf(decision) } : { text: decision.text, isError: true, code: decision.code };
  } catch {
    // The gate promises not to reject; one that breaks must not open.
    return { text: 'Error: not run, because permission could not be asked for.', isError: true, code: 'PERMISSION_UNAVAILABLE' };
  }
}

function boundsOf({ network, sandbox, unasked }: CommandBounds): CommandBounds {
  return {
    ...(network === undefined ? {} : { network }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(unasked === undefined ? {} : { unasked }),
  };
}

/** Whether a call may change files past the file tools. */
function worksOnTheDisk({ kind }: ToolAccess): boolean {
  return kind !== 'none' && kind !== 'read' && kind !== 'write';
}

/** The start must be on the disk before the body acts, else a crash would hide that it ever began. Says why it is not. */
async function logStart(scope: TurnScope, { step, callId }: RunnableCall): Promise<ToolOutcome | undefined> {
  try {
    scope.record({ type: 'tool/start', data: { turn: scope.turn, step, callId } });
    await scope.barrier();
    return undefined;
  } catch {
    // The scope has taken the reason over and ended the turn with it.
    return { text: 'Error: not run, because the session log could not be written.', isError: true, code: 'LOG_WRITE_FAILED' };
  }
}

interface CallState {
  readonly life: { over: boolean };
  readonly bounds: CommandBounds;
}

function toolContext(context: AgentContext, scope: TurnScope, call: RunnableCall, { life, bounds }: CallState): ToolContext {
  return {
    ...context.toolParts,
    env: context.options.env ?? {},
    ...bounds,
    sessionId: context.sessionId,
    callId: call.callId,
    cwd: context.cwd,
    signal: scope.signal,
    commandTimeoutMs: context.settings.commandTimeoutMs,
    ripgrepPath: context.settings.ripgrepPath,
    ...liveOutput(context, scope, call.callId, life),
    ...snapshots(context, scope, call.callId),
    writeTodos: (todos) => {
      if (!life.over) scope.record({ type: 'todo/write', data: { todos } });
    },
    budgetLeft: () => scope.limits.forDelegation(),
    traceparent: scope.options.traceparent,
  };
}

/** Nothing is shown of a call that was given up: its card has ended by then. */
function liveOutput(
  { live, whenWritable }: AgentContext,
  scope: TurnScope,
  callId: string,
  life: { over: boolean },
): Pick<ToolContext, 'live'> {
  if (live === undefined) return {};
  const show = (text: string): void => {
    if (!life.over) live.output(callId, text);
  };
  return { live: { paceMs: live.outputPaceMs, whenWritable: () => whenWritable(scope.signal), show } };
}

/** Runs the body; where that is asked for, what it changes past the file tools is found out and kept. */
async function watched(
  context: AgentContext,
  scope: TurnScope,
  call: RunnableCall,
  execute: () => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const { workspaceWatch, cwd } = context;
  const { tool, args, callId } = call;
  // What works on in the background is not over when its call is.
  if (workspaceWatch === undefined || goesOn(args) || !worksOnTheDisk(tool.access(args, { cwd }))) return await execute();
  const record = (event: EventInput): void => {
    scope.signal.throwIfAborted();
    scope.record(event);
  };
  return await workspaceWatch.around({ turn: scope.turn, callId, signal: scope.signal, record }, execute);
}

function goesOn(args: unknown): boolean {
  return typeof args === 'object' && args !== null && 'run_in_background' in args && args.run_in_background === true;
}

/** A call that was given up must change nothing any more, for its turn has ended in the log. */
function snapshots({ snapshots }: AgentContext, scope: TurnScope, callId: string): Pick<ToolContext, 'keepBefore' | 'noteActual'> {
  if (snapshots === undefined) return {};
  const place = { turn: scope.turn, callId };
  const record = (event: EventInput): void => {
    scope.signal.throwIfAborted();
    scope.record(event);
  };
  return {
    keepBefore: (change) => snapshots.keep(change, place, { record, barrier: () => scope.barrier() }),
    noteActual: (change) => snapshots.noteActual(change, place, { record }),
  };
}

const notRun: ToolOutcome = { text: 'Error: not run, because the turn ended first.', isError: true, code: 'ABORTED_BEFORE_DISPATCH' };

function bounded(outcome: ToolOutcome): ToolOutcome {
  const { meta, ...rest } = outcome;
  const text = prunedText(outcome.text, longestResult);
  const metaFits = meta !== undefined && JSON.stringify(meta).length <= longestMeta;
  return metaFits ? { ...rest, text, meta } : { ...rest, text };
}
