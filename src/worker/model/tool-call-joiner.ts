/**
 * Joins the pieces of streamed tool calls. A piece names its call by index; only the first one carries id and name.
 *
 * Ids must be unique within a session, whatever the server does: a missing or repeated id is replaced by `call_N`.
 */
import type { ToolCallRequest } from '../../shared/events.ts';
import { type ModelEvent, ModelFailure, type ModelMessage } from './model-adapter.ts';

/** More calls than this in one answer is a fault of the model, not work. */
const maxCalls = 512;

interface OpenCall {
  readonly callId: string;
  name: string;
  arguments: string;
}

/** What a server may put in one element of `delta.tool_calls`. */
export interface ToolCallPiece {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null;
}

/** The ids that a history has used, so that an answer cannot use them again. */
export function usedCallIds(messages: readonly ModelMessage[]): Set<string> {
  const used = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant') for (const call of message.toolCalls) used.add(call.callId);
  }
  return used;
}

export class ToolCallJoiner {
  readonly #byIndex = new Map<number, OpenCall>();
  readonly #readUsed: () => Set<string>;
  #known: Set<string> | undefined;
  readonly #sink: (event: ModelEvent) => void;
  #lastIndex = -1;

  /** @param used is asked once, and only when there is a call; what it returns grows by the ids of this answer */
  constructor(used: () => Set<string>, sink: (event: ModelEvent) => void) {
    this.#readUsed = used;
    this.#sink = sink;
  }

  get size(): number {
    return this.#byIndex.size;
  }

  /** @throws ModelFailure MALFORMED_RESPONSE */
  add(piece: ToolCallPiece): void {
    const fn = piece.function ?? {};
    const index = this.#indexOf(piece);
    let call = this.#byIndex.get(index);
    if (call === undefined) {
      if (this.#byIndex.size >= maxCalls) {
        throw new ModelFailure('MALFORMED_RESPONSE', `The model made more than ${maxCalls} tool calls in one answer.`);
      }
      call = { callId: this.#claimId(piece.id), name: '', arguments: '' };
      this.#byIndex.set(index, call);
    }
    this.#lastIndex = index;
    if (call.name === '' && typeof fn.name === 'string' && fn.name !== '') {
      call.name = fn.name;
      this.#sink({ type: 'tool-call-start', callId: call.callId, name: call.name });
      // What came before the name is told with it.
      if (call.arguments !== '') this.#sink({ type: 'tool-call-delta', callId: call.callId, text: call.arguments });
    }
    const text = argumentsText(fn.arguments);
    if (text === '') return;
    call.arguments += text;
    if (call.name !== '') this.#sink({ type: 'tool-call-delta', callId: call.callId, text });
  }

  /** The calls in the order in which they began. A call without a name is dropped when the answer was `cut`. */
  finish(cut: boolean): ToolCallRequest[] {
    const calls: ToolCallRequest[] = [];
    for (const call of this.#byIndex.values()) {
      if (call.name !== '') calls.push({ callId: call.callId, name: call.name, arguments: call.arguments });
      else if (!cut) throw new ModelFailure('MALFORMED_RESPONSE', 'The model server sent a tool call without a name.');
    }
    return calls;
  }

  /** Servers that leave the index out send whole calls, each with an id, or continue the last one. */
  #indexOf(piece: ToolCallPiece): number {
    if (typeof piece.index === 'number' && Number.isInteger(piece.index)) return piece.index;
    const begins = (typeof piece.id === 'string' && piece.id !== '') || this.#lastIndex < 0;
    return begins ? this.#byIndex.size : this.#lastIndex;
  }

  #claimId(id: unknown): string {
    let claimed = typeof id === 'string' && id.length <= 256 ? id : '';
    const used = (this.#known ??= this.#readUsed());
    for (let n = used.size + 1; claimed === '' || used.has(claimed); n += 1) claimed = `call_${n}`;
    used.add(claimed);
    return claimed;
  }
}

/** Some servers send the arguments as an object, whole. */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : '';
}
