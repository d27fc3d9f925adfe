/**
 * Knows which records of the log still wait for their counterpart, and writes the counterparts down when a turn closes.
 *
 * This is why every call has exactly one result and every turn one end, whatever cut it short: there is one place that
 * closes, and it works from the log, not from what the loop believes. A closer that could not be written stays open and
 * is written before the next turn.
 */
import type { JsonValue } from '../../shared/errors.ts';
import type { EventInput, LogEvent, ToolCallRequest, TurnEndReason, TurnUsage } from '../../shared/events.ts';
import { noTurnUsage } from './turn-usage.ts';

interface OpenCall {
  readonly turn: number;
  readonly step: number;
  readonly request: ToolCallRequest;
  /** How far the log knows the call: named by the model, taken up by `tool/call`, or begun by `tool/start`. */
  state: 'named' | 'called' | 'started';
}

/** What a `turn/end` says. */
export interface DecidedEnd {
  readonly reason: TurnEndReason;
  readonly usage: TurnUsage;
  readonly structured?: JsonValue;
}

export class OpenRecords {
  readonly #calls = new Map<string, OpenCall>();
  #turn: number | undefined;
  #end: DecidedEnd | undefined;
  #step: { readonly turn: number; readonly step: number } | undefined;

  apply(event: LogEvent): void {
    switch (event.type) {
      case 'turn/start':
        this.#turn = event.data.turn;
        this.#end = undefined;
        return;
      case 'turn/end':
        this.#turn = undefined;
        return;
      case 'step/start':
        this.#step = event.data;
        return;
      case 'step/end':
        this.#step = undefined;
        return;
      case 'assistant/message':
        for (const request of event.data.toolCalls) {
          this.#calls.set(request.callId, { turn: event.data.turn, step: event.data.step, request, state: 'named' });
        }
        return;
      case 'tool/call':
        this.#advance(event.data.callId, 'called');
        return;
      case 'tool/start':
        this.#advance(event.data.callId, 'started');
        return;
      case 'tool/result':
        this.#calls.delete(event.data.callId);
        return;
      case 'assistant/chunk':
      case 'command/run':
      case 'file/snapshot':
      case 'history/compacted':
      case 'history/pruned':
      case 'instructions/read':
      case 'history/rewound':
      case 'llm/retry':
      case 'llm/wait':
      case 'mcp/status':
      case 'mode/change':
      case 'options/change':
      case 'permission/asked':
      case 'permission/decided':
      case 'request/header':
      case 'subagent/activity':
      case 'subagent/end':
      case 'subagent/start':
      case 'thread/attached':
      case 'session/title':
      case 'todo/write':
      case 'undo/start':
      case 'workspace/observed':
      case 'user/message':
        return; // These have no counterpart.
    }
  }

  /**
   * Remembers how a turn ended, until its end is in the log. Without effect once it is.
   */
  decideEnd(turn: number, end: DecidedEnd): void {
    if (turn === this.#turn) this.#end = end;
  }

  /** The events that close everything but the turn: results first, then the step. */
  closers(): EventInput[] {
    const events = [...this.#calls.values()].flatMap(callClosers);
    if (this.#step !== undefined) events.push({ type: 'step/end', data: { turn: this.#step.turn, step: this.#step.step } });
    return events;
  }

  /** The event that closes the turn; a turn of which nobody knows the end was interrupted. */
  turnCloser(): EventInput[] {
    if (this.#turn === undefined) return [];
    const end: DecidedEnd = this.#end ?? { reason: { kind: 'interrupted' }, usage: noTurnUsage };
    return [{ type: 'turn/end', data: { turn: this.#turn, ...end } }];
  }

  #advance(callId: string, state: OpenCall['state']): void {
    const call = this.#calls.get(callId);
    if (call !== undefined) call.state = state;
  }
}

function callClosers({ turn, step, request, state }: OpenCall): EventInput[] {
  const { callId } = request;
  const result = { turn, step, callId, isError: true };
  if (state === 'started') {
    const text = 'Error: the outcome of this call was not recorded. Check what it did before you repeat it.';
    return [{ type: 'tool/result', data: { ...result, text, code: 'TOOL_OUTCOME_UNKNOWN' } }];
  }
  const text = 'Error: not run, because the turn ended first.';
  const refusal: EventInput = { type: 'tool/result', data: { ...result, text, code: 'ABORTED_BEFORE_DISPATCH' } };
  if (state === 'called') return [refusal];
  return [{ type: 'tool/call', data: { turn, step, callId, name: request.name, arguments: request.arguments } }, refusal];
}
