/**
 * Knows, while a log is read, what would be left open if it ended here. Feeds {@link closingEvents}; holds no more than one
 * turn's calls and one message's streamed text.
 */
import type { EventData, LogEvent, TokenUsage } from '../../shared/events.ts';

export interface OpenCall {
  readonly step: number;
  readonly callId: string;
  /** A `tool/start` was logged: the body may have run. */
  readonly started: boolean;
  /** What the message asked for, as long as no `tool/call` has been logged. */
  readonly unlogged?: { readonly name: string; readonly arguments: string };
}

/** Text that was streamed for a message which the log does not hold. */
export interface OpenMessage {
  readonly step: number;
  readonly messageId: string;
  readonly text: string;
  readonly reasoning: string;
}

export interface OpenTurn {
  readonly turn: number;
  readonly step: number | undefined;
  readonly calls: readonly OpenCall[];
  readonly message: OpenMessage | undefined;
  readonly usage: EventData['turn/end']['usage'];
}

export class OpenTurnTracker {
  #turn: number | undefined;
  #step: number | undefined;
  readonly #calls = new Map<string, OpenCall>();
  #message: { -readonly [K in keyof OpenMessage]: OpenMessage[K] } | undefined;
  #usage: EventData['turn/end']['usage'] = emptyUsage();
  #startTime = 0;
  #lastTime = 0;

  /** Takes the next event of the log, in order. */
  feed(event: LogEvent): void {
    this.#lastTime = event.time;
    switch (event.type) {
      case 'turn/start':
        this.#startTurn(event.data.turn, event.time);
        break;
      case 'turn/end':
        this.#endTurn();
        break;
      case 'step/start':
        this.#step = event.data.step;
        this.#usage = { ...this.#usage, steps: this.#usage.steps + 1 };
        break;
      case 'step/end':
        this.#step = undefined;
        break;
      case 'assistant/chunk':
        this.#addChunk(event.data);
        break;
      case 'assistant/message':
        this.#addMessage(event.data);
        break;
      case 'tool/call':
        this.#setCall(event.data, false);
        this.#usage = { ...this.#usage, toolCalls: this.#usage.toolCalls + 1 };
        break;
      case 'tool/start':
        this.#setCall(event.data, true);
        break;
      case 'tool/result':
        this.#calls.delete(event.data.callId);
        break;
      case 'llm/retry':
        // The attempt was given up; what it streamed is not what the model said.
        this.#message = undefined;
        break;
      case 'history/compacted':
        this.#addUsage(event.data.usage);
        break;
      case 'user/message':
      case 'command/run':
      case 'thread/attached':
      case 'request/header':
      case 'permission/asked':
      case 'permission/decided':
      case 'mode/change':
      case 'options/change':
      case 'session/title':
      case 'mcp/status':
      case 'todo/write':
      case 'history/pruned':
      case 'instructions/read':
      case 'history/rewound':
      case 'file/snapshot':
      case 'undo/start':
      case 'workspace/observed':
      case 'llm/wait':
      // What a subagent has open is its own session's to close.
      case 'subagent/start':
      case 'subagent/activity':
      case 'subagent/end':
        break;
    }
  }

  /** What is open after the events so far; undefined between turns. */
  openTurn(): OpenTurn | undefined {
    if (this.#turn === undefined) {
      return undefined;
    }
    return {
      turn: this.#turn,
      step: this.#step,
      calls: [...this.#calls.values()],
      message: this.#message === undefined ? undefined : { ...this.#message },
      usage: { ...this.#usage, elapsedMs: Math.max(0, this.#lastTime - this.#startTime) },
    };
  }

  #startTurn(turn: number, time: number): void {
    this.#turn = turn;
    this.#step = undefined;
    this.#message = undefined;
    this.#usage = emptyUsage();
    this.#startTime = time;
  }

  #endTurn(): void {
    this.#turn = undefined;
    this.#step = undefined;
    this.#message = undefined;
    this.#calls.clear();
  }

  #addChunk(chunk: EventData['assistant/chunk']): void {
    if (this.#turn === undefined) {
      return;
    }
    // Changed in place: most lines of a log are chunks.
    if (this.#message?.messageId !== chunk.messageId) {
      this.#message = { step: chunk.step, messageId: chunk.messageId, text: '', reasoning: '' };
    }
    this.#message[chunk.kind] += chunk.text;
  }

  #addMessage(message: EventData['assistant/message']): void {
    this.#message = undefined;
    for (const { callId, name, arguments: text } of message.toolCalls) {
      this.#calls.set(callId, { step: message.step, callId, started: false, unlogged: { name, arguments: text } });
    }
    this.#addUsage(message.usage);
  }

  /** A call that is known already keeps its place among the others. */
  #setCall({ step, callId }: Pick<OpenCall, 'step' | 'callId'>, started: boolean): void {
    this.#calls.set(callId, { step, callId, started });
  }

  #addUsage(more: TokenUsage | undefined): void {
    if (more === undefined) {
      return;
    }
    const sum = this.#usage;
    this.#usage = {
      ...sum,
      inputTokens: sum.inputTokens + more.inputTokens,
      outputTokens: sum.outputTokens + more.outputTokens,
      cacheReadTokens: sum.cacheReadTokens + more.cacheReadTokens,
      reasoningTokens: sum.reasoningTokens + more.reasoningTokens,
    };
  }
}

function emptyUsage(): EventData['turn/end']['usage'] {
  return { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0, steps: 0, toolCalls: 0, elapsedMs: 0 };
}
