/**
 * The cards of one session's tool calls, from the moment the model names them to their results. Holds what is in flight and
 * nothing that has ended.
 *
 * `tool/result` names neither the tool nor its arguments, so both are kept from the call. A presenter is a tool's own code
 * on arguments of a model: when it is missing or throws, the call is shown plainly and everything else goes on.
 *
 * Drafts and the output of running commands are shown live only: what the log says later says the same, so a replay ends
 * with the same cards. A draft whose call never came to be logged is ended as failed, and a replay does not have it.
 */
import type { SessionUpdate, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { JsonValue } from '../../shared/errors.ts';
import type { EventData, ToolCallRequest } from '../../shared/events.ts';
import type { ArgumentsDraft } from '../../shared/render-intents.ts';
import { fencedText } from '../display/fenced-text.ts';
import type { PermissionCall } from '../permission/permission-gate.ts';
import type { AnyTool } from '../tools/tool.ts';
import { textContent } from './call-card.ts';
import { changedMembers, type DraftCard, draftCard, settledMembers } from './draft-card.ts';
import { permissionCard } from './permission-card.ts';
import { fallbackResultCard, type ResultCard, type ResultCardContext, resultCard, terminalExit } from './result-card.ts';
import { cardOrFallback, parsedArguments, type ShownCall, shownCall } from './shown-call.ts';
import { ContentBudget } from './size-caps.ts';

/** The part of a tool that shows its calls. May be given arguments that the tool would refuse: it then throws. */
export type ToolPresenter = Pick<AnyTool, 'presentDraft' | 'presentCall' | 'presentResult'>;

export interface ToolCardsOptions {
  readonly cwd: string;
  readonly terminalOutput: boolean;
  readonly presenterOf: (toolName: string) => ToolPresenter | undefined;
}

interface InFlightCall extends ShownCall {
  readonly args: JsonValue;
  started: boolean;
  /** The end of what its command has shown so far; `undefined` before the first of it. */
  written: string | undefined;
}

/** Of a running command's output a client without terminals sees this many characters, the last ones. */
const shownTail = 4 * 1024;

export class ToolCards {
  readonly #options: ToolCardsOptions;
  readonly #drafts = new Map<string, DraftCard>();
  readonly #inFlight = new Map<string, InFlightCall>();
  /** Calls whose terminal shows what is there for a question alone. */
  readonly #questions = new Set<string>();
  /** Calls that were ended before the log could say so: it says so later, and that is no news. */
  readonly #endedEarly = new Set<string>();

  constructor(options: ToolCardsOptions) {
    this.#options = options;
  }

  /** A call that the model still writes, as far as it is: its card, or what has changed in it. */
  draft(callId: string, toolName: string, args: ArgumentsDraft): SessionUpdate[] {
    if (this.#inFlight.has(callId)) return [];
    const { cwd, presenterOf } = this.#options;
    const card = draftCard(args, { callId, toolName, cwd, presenter: presenterOf(toolName) });
    const before = this.#drafts.get(callId);
    const changed = before === undefined ? undefined : changedMembers(before, card);
    if (before === undefined || changed !== undefined) this.#drafts.set(callId, card);
    if (before === undefined) return [{ sessionUpdate: 'tool_call', ...card, status: 'pending' }];
    return changed === undefined ? [] : [{ sessionUpdate: 'tool_call_update', toolCallId: callId, ...changed }];
  }

  /** The answer is there: the cards of all its calls, in order, and the end of drafts that are not among them. */
  answer(calls: readonly ToolCallRequest[]): SessionUpdate[] {
    const shown = calls.flatMap((call) => this.call(call));
    return [...shown, ...this.endDrafts('The model did not finish this call; nothing was run.')];
  }

  /** The call, if nothing of it was shown before. It waits: for its permission, or for calls before it. */
  call(data: ToolCallRequest): SessionUpdate[] {
    const { callId } = data;
    if (this.#inFlight.has(callId) || this.#endedEarly.has(callId)) return [];
    const args = parsedArguments(data.arguments);
    const shown = shownCall(this.#options.presenterOf(data.name), args, this.#context(callId, data.name, args));
    this.#inFlight.set(callId, { ...shown, args, started: false, written: undefined });
    const draft = this.#drafts.get(callId);
    this.#drafts.delete(callId);
    // Clients that draw terminals make one only for what stands in a `tool_call`, with its title and directory: they take a
    // second one of the same id as the new state of that card.
    if (draft === undefined || this.#isTerminal(shown)) return [{ sessionUpdate: 'tool_call', ...shown.members, status: 'pending' }];
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, ...settledMembers(draft, shown.members) }];
  }

  /** The answer was given up: its drafts end as failed, with words that say why. */
  endDrafts(why: string): SessionUpdate[] {
    const open = [...this.#drafts.keys()];
    this.#drafts.clear();
    const content = [textContent(why, new ContentBudget())];
    return open.map((toolCallId) => ({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed', content }));
  }

  /** The call runs. One that is refused never does, and goes on to its result. */
  start(callId: string): SessionUpdate[] {
    const call = this.#inFlight.get(callId);
    if (call === undefined || call.started) return [];
    call.started = true;
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'in_progress' }];
  }

  /** More of what a running command writes. Nothing for a call that has ended, or that is no command. */
  output(callId: string, text: string): SessionUpdate[] {
    const call = this.#inFlight.get(callId);
    if (call?.started !== true || call.card !== 'terminal' || text === '') return [];
    if (this.#options.terminalOutput) {
      call.written = text.slice(-1);
      const data = new ContentBudget().take(text);
      return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, _meta: { terminal_output: { terminal_id: callId, data } } }];
    }
    call.written = ((call.written ?? '') + text).slice(-shownTail);
    const console = textContent(fencedText(call.written, 'console'), new ContentBudget());
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, content: [...(call.members.content ?? []), console] }];
  }

  /** What a running call's child does, in place of the card's content. Nothing for a call that has ended. */
  progress(callId: string, text: string): SessionUpdate[] {
    if (this.#inFlight.get(callId)?.started !== true) return [];
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, content: [textContent(text, new ContentBudget())] }];
  }

  /** The card of a call as it was before a question about it, or in its name, showed something else in it. */
  restore(callId: string, progress: string | undefined): SessionUpdate[] {
    const call = this.#inFlight.get(callId);
    const lingers = this.#questions.delete(callId);
    if (call === undefined || !(call.started || lingers)) return [];
    const { title, rawInput, content = [] } = call.members;
    const shown = progress === undefined ? content : [textContent(progress, new ContentBudget())];
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, title, rawInput, content: shown }];
  }

  /** The last update of a call; nothing for a call that was never shown or has already ended. */
  result(data: EventData['tool/result']): SessionUpdate[] {
    this.#endedEarly.delete(data.callId);
    const call = this.#inFlight.get(data.callId);
    if (call === undefined) return [];
    this.#inFlight.delete(data.callId);
    const status = data.isError ? 'failed' : 'completed';
    return [{ sessionUpdate: 'tool_call_update', toolCallId: data.callId, status, ...this.#resultMembers(call, data) }];
  }

  /** A turn begins: what an earlier one left in flight ends as failed, and its log will say no more of it. */
  begin(): SessionUpdate[] {
    const ended = this.endAll();
    this.#endedEarly.clear();
    return ended;
  }

  /** Ends as failed whatever is still in flight: a turn leaves no card open. */
  endAll(): SessionUpdate[] {
    const open = [...this.#inFlight];
    this.#inFlight.clear();
    for (const [callId] of open) this.#endedEarly.add(callId);
    const ended = open.map(([toolCallId, call]): SessionUpdate => {
      const exit = this.#isTerminal(call) ? terminalExit(toolCallId) : {};
      return { sessionUpdate: 'tool_call_update', toolCallId, status: 'failed', ...exit };
    });
    return [...ended, ...this.endDrafts('Not run: the turn ended while the model was writing this call.')];
  }

  /** The `toolCall` of a permission request. `reason` says why the call needs a permission. */
  permissionToolCall(call: PermissionCall, reason: string | undefined): ToolCallUpdate {
    const members = cardOrFallback(call.view, this.#context(call.callId, call.toolName, call.rawInput));
    const { toolCall, lingers } = permissionCard(call, members, reason);
    if (lingers) this.#questions.add(call.callId);
    return toolCall;
  }

  #resultMembers(call: InFlightCall, data: EventData['tool/result']): ResultCard {
    const { text, isError, code, meta, callId } = data;
    const { terminalOutput, cwd } = this.#options;
    const context: ResultCardContext = { callId, callCard: call.card, terminalOutput, text, written: call.written };
    if (call.presenter === undefined) return fallbackResultCard(context);
    const outcome = { text, isError, ...(code === undefined ? {} : { code }), ...(meta === undefined ? {} : { meta }) };
    try {
      return resultCard(call.presenter.presentResult(call.args, outcome, { cwd }), context);
    } catch {
      // The presenter could not make sense of this result; its text always can be shown.
      return fallbackResultCard(context);
    }
  }

  #isTerminal({ card }: ShownCall): boolean {
    return card === 'terminal' && this.#options.terminalOutput;
  }

  #context(callId: string, toolName: string, rawInput: JsonValue) {
    return { callId, toolName, cwd: this.#options.cwd, terminalOutput: this.#options.terminalOutput, rawInput };
  }
}
