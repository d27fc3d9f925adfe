/**
 * The cards of one session's tool calls, from call to result. Holds what is in flight and nothing that has ended.
 *
 * `tool/result` names neither the tool nor its arguments, so both are kept from the call. A presenter is a tool's own code
 * on arguments of a model: when it is missing or throws, the call is shown plainly and everything else goes on.
 */
import type { SessionUpdate, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { JsonValue } from '../../shared/errors.ts';
import type { EventData } from '../../shared/events.ts';
import type { ToolCallView } from '../../shared/render-intents.ts';
import type { PermissionCall } from '../permission/permission-gate.ts';
import type { AnyTool } from '../tools/tool.ts';
import { type CallCard, callCard, fallbackCallCard, textContent } from './call-card.ts';
import { fencedText } from '../display/fenced-text.ts';
import { fallbackResultCard, type ResultCard, resultCard } from './result-card.ts';
import { ContentBudget } from './size-caps.ts';

/** The part of a tool that shows its calls. May be given arguments that the tool would refuse: it then throws. */
export type ToolPresenter = Pick<AnyTool, 'presentCall' | 'presentResult'>;

export interface ToolCardsOptions {
  readonly cwd: string;
  readonly terminalOutput: boolean;
  readonly presenterOf: (toolName: string) => ToolPresenter | undefined;
}

interface InFlightCall {
  readonly presenter: ToolPresenter | undefined;
  readonly args: JsonValue;
  readonly card: ToolCallView['card'];
  readonly members: CallCard;
  started: boolean;
}

export class ToolCards {
  readonly #options: ToolCardsOptions;
  readonly #inFlight = new Map<string, InFlightCall>();

  constructor(options: ToolCardsOptions) {
    this.#options = options;
  }

  /** The first update of a call. It waits: for its permission, or for calls before it. */
  call(data: EventData['tool/call']): SessionUpdate[] {
    if (this.#inFlight.has(data.callId)) return [];
    const args = parseArguments(data.arguments);
    const presenter = this.#options.presenterOf(data.name);
    const context = this.#context(data.callId, data.name, args);
    const shown = presentCall(presenter, args, context);
    this.#inFlight.set(data.callId, { presenter: shown.presenter, args, card: shown.card, members: shown.members, started: false });
    return [{ sessionUpdate: 'tool_call', ...shown.members, status: 'pending' }];
  }

  /** The call runs. One that is refused never does, and goes on to its result. */
  start(callId: string): SessionUpdate[] {
    const call = this.#inFlight.get(callId);
    if (call === undefined || call.started) return [];
    call.started = true;
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, status: 'in_progress' }];
  }

  /** What a running call's child does, in place of the card's content. Nothing for a call that has ended. */
  progress(callId: string, text: string): SessionUpdate[] {
    if (this.#inFlight.get(callId)?.started !== true) return [];
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, content: [textContent(text, new ContentBudget())] }];
  }

  /** The card of a running call as it was before a question in its name showed something else in it. */
  restore(callId: string, progress: string | undefined): SessionUpdate[] {
    const call = this.#inFlight.get(callId);
    if (call === undefined || !call.started) return [];
    const { title, rawInput, content = [] } = call.members;
    const shown = progress === undefined ? content : [textContent(progress, new ContentBudget())];
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, title, rawInput, content: shown }];
  }

  /** The last update of a call; nothing for a call that was never shown or has already ended. */
  result(data: EventData['tool/result']): SessionUpdate[] {
    const call = this.#inFlight.get(data.callId);
    if (call === undefined) return [];
    this.#inFlight.delete(data.callId);
    const status = data.isError ? 'failed' : 'completed';
    return [{ sessionUpdate: 'tool_call_update', toolCallId: data.callId, status, ...this.#resultMembers(call, data) }];
  }

  /** Ends as failed whatever is still in flight: a turn leaves no card open. */
  endAll(): SessionUpdate[] {
    const open = [...this.#inFlight.keys()];
    this.#inFlight.clear();
    return open.map((toolCallId) => ({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' }));
  }

  /**
   * The `toolCall` of a permission request: all that a client needs to show, since many show nothing but this. `reason`
   * says why the call needs a permission.
   */
  permissionToolCall(call: PermissionCall, reason: string | undefined): ToolCallUpdate {
    const context = this.#context(call.callId, call.toolName, call.rawInput);
    const members = cardOrFallback(call.view, context);
    // The content of the request replaces the card's. A terminal must stay in it, and nothing of ours beside it.
    if (call.view.card === 'terminal' && this.#options.terminalOutput) return { ...members, status: 'pending' };
    const budget = new ContentBudget(16 * 1024);
    const lead = [
      ...(reason === undefined ? [] : [textContent(reason, budget)]),
      // A command that is not its own title already stands in the card, whole.
      ...(call.view.card === 'terminal' && members.title === call.view.title
        ? [textContent(fencedText(call.view.title, 'sh'), budget)]
        : []),
    ];
    return { ...members, status: 'pending', content: [...lead, ...(members.content ?? [])] };
  }

  #resultMembers(call: InFlightCall, data: EventData['tool/result']): ResultCard {
    if (call.presenter === undefined) return fallbackResultCard(data.text);
    const { text, isError, code, meta } = data;
    const outcome = { text, isError, ...(code === undefined ? {} : { code }), ...(meta === undefined ? {} : { meta }) };
    try {
      const view = call.presenter.presentResult(call.args, outcome, { cwd: this.#options.cwd });
      return resultCard(view, { callId: data.callId, callCard: call.card, terminalOutput: this.#options.terminalOutput, text });
    } catch {
      // The presenter could not make sense of this result; its text always can be shown.
      return fallbackResultCard(text);
    }
  }

  #context(callId: string, toolName: string, rawInput: JsonValue) {
    return { callId, toolName, cwd: this.#options.cwd, terminalOutput: this.#options.terminalOutput, rawInput };
  }
}

type CardContext = Parameters<typeof callCard>[1];

interface ShownCall {
  readonly members: CallCard;
  readonly card: ToolCallView['card'];
  /** Missing when the call is shown plainly: its result is then, too. */
  readonly presenter: ToolPresenter | undefined;
}

function presentCall(presenter: ToolPresenter | undefined, args: JsonValue, context: CardContext): ShownCall {
  if (presenter !== undefined) {
    try {
      const view = presenter.presentCall(args, { cwd: context.cwd });
      return { members: callCard(view, context), card: view.card, presenter };
    } catch {
      // Broken or refused arguments: shown plainly below.
    }
  }
  return { members: fallbackCallCard(context), card: 'generic', presenter: undefined };
}

function cardOrFallback(view: ToolCallView, context: CardContext): CallCard {
  try {
    return callCard(view, context);
  } catch {
    // Not a view; the arguments are shown instead.
    return fallbackCallCard(context);
  }
}

function parseArguments(text: string): JsonValue {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // A model's broken JSON is shown as it came.
    return text;
  }
}
