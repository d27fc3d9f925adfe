/**
 * Rebuilds from a session's log what its model saw, as chat messages in the form of OpenAI's API. The whole conversation: what was
 * cut or summarized for the model stands here as it was.
 */
import type { EventData, LogEvent, ToolCallRequest } from '../../../shared/events.ts';
import { promptText } from '../../../shared/prompt-text.ts';
import { sendableCall } from '../../../shared/sendable-call.ts';

export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string;
      readonly reasoning_content?: string;
      readonly tool_calls?: readonly ChatToolCall[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message of the user, or an answer with the results of its calls. */
type Unit =
  | { readonly turn: number; readonly message: ChatMessage; readonly calls?: undefined }
  | { readonly turn: number; readonly message: ChatMessage; readonly calls: readonly string[] };

/** More is not kept: one line of the export must fit into memory. */
const mostChars = 64 * 1024 * 1024;

/** A request never carries an empty result. */
const emptyResult = '(no output)';

export class Trajectory {
  readonly #units: Unit[] = [];
  /** Of turns that were undone; a redo brings them back. */
  readonly #undone: Unit[] = [];
  readonly #results = new Map<string, string>();
  #header: EventData['request/header'] | undefined;
  #headers = 0;
  #model: string | undefined;
  #refusedTurn: number | undefined;
  #chars = 0;
  /** Summaries and cuts that the model saw in place of messages that stand here whole. */
  compactions = 0;
  /** Whether messages were left out, as there were too many. */
  truncated = false;

  /** The name that the provider reported, else the one that was asked for. */
  get model(): string | undefined {
    return this.#model ?? this.#header?.model;
  }

  get tools(): readonly string[] {
    return this.#header?.tools ?? [];
  }

  /** Names the schemas of the tools. */
  get toolsHash(): string | undefined {
    return this.#header?.toolsHash;
  }

  /** Whether instructions or tools changed on the way; the last ones stand in front. */
  get headerChanged(): boolean {
    return this.#headers > 1;
  }

  /** In log order. */
  onEvent(event: LogEvent): void {
    switch (event.type) {
      case 'request/header':
        this.#header = event.data;
        this.#headers += 1;
        return;
      case 'turn/start':
        // A refused turn is never sent again; the last one stays, as the model has seen it.
        if (this.#refusedTurn !== undefined) this.#drop(this.#refusedTurn);
        this.#refusedTurn = undefined;
        return;
      case 'turn/end':
        if (event.data.reason.kind === 'refusal') this.#refusedTurn = event.data.turn;
        return;
      case 'user/message':
        this.#push({ turn: event.data.turn, message: { role: 'user', content: promptText(event.data.content) } });
        return;
      case 'assistant/message':
        this.#pushAnswer(event.data);
        return;
      case 'tool/result':
        if (!this.#results.has(event.data.callId) && this.#fits(event.data.text.length)) {
          this.#results.set(event.data.callId, event.data.text === '' ? emptyResult : event.data.text);
        }
        return;
      case 'history/rewound':
        this.#rewind(event.data);
        return;
      case 'history/compacted':
      case 'history/pruned':
        this.compactions += 1;
        return;
      case 'assistant/chunk':
      case 'command/run':
      case 'file/snapshot':
      case 'instructions/read':
      case 'llm/retry':
      case 'llm/wait':
      case 'mcp/status':
      case 'mode/change':
      case 'options/change':
      case 'permission/asked':
      case 'permission/decided':
      case 'step/end':
      case 'step/start':
      case 'subagent/activity':
      case 'subagent/end':
      case 'subagent/start':
      case 'thread/attached':
      case 'session/title':
      case 'todo/write':
      case 'tool/call':
      case 'tool/start':
      case 'undo/start':
      case 'workspace/observed':
        return; // For people and for the client; no model reads these.
    }
  }

  /** @returns `answered` false when a call has no result in the log: the session was cut off there */
  messages(): { readonly messages: readonly ChatMessage[]; readonly answered: boolean } {
    const system = this.#header?.system ?? '';
    const messages: ChatMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
    let answered = true;
    for (const { message, calls } of this.#units) {
      messages.push(message);
      for (const callId of calls ?? []) {
        const content = this.#results.get(callId);
        if (content === undefined) answered = false;
        else messages.push({ role: 'tool', tool_call_id: callId, content });
      }
    }
    return { messages, answered };
  }

  #pushAnswer(data: EventData['assistant/message']): void {
    this.#model = data.model ?? this.#model;
    // The calls of an answer that broke off may be incomplete and were dropped.
    const calls = data.finish === 'interrupted' ? [] : data.toolCalls.map(sendableCall);
    if (data.text === '' && calls.length === 0) return;
    const message = {
      role: 'assistant' as const,
      content: data.text,
      ...(data.reasoning === '' ? {} : { reasoning_content: data.reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls.map(chatCall) }),
    };
    this.#push({ turn: data.turn, message, calls: calls.map(({ callId }) => callId) });
  }

  #push(unit: Unit): void {
    if (this.#fits(JSON.stringify(unit.message).length)) this.#units.push(unit);
  }

  #fits(chars: number): boolean {
    this.#chars += chars;
    this.truncated ||= this.#chars > mostChars;
    return !this.truncated;
  }

  /** Undone turns are no part of what the model went on from. Nothing is said between an undo and its redo, so those come back at the end. */
  #rewind({ kind, turns }: EventData['history/rewound']): void {
    const [from, to] = kind === 'redo' ? [this.#undone, this.#units] : [this.#units, this.#undone];
    const concerned = from.filter(({ turn }) => turns.includes(turn));
    const others = from.filter(({ turn }) => !turns.includes(turn));
    from.splice(0, from.length, ...others);
    to.push(...concerned);
  }

  #drop(turn: number): void {
    while (this.#units.at(-1)?.turn === turn) this.#units.pop();
  }
}

function chatCall(call: ToolCallRequest): ChatToolCall {
  return { id: call.callId, type: 'function', function: { name: call.name, arguments: call.arguments } };
}
