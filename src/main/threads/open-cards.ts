/**
 * The tool cards that each session of a thread has open at the client, so that a thread's death leaves none spinning.
 */
import type { ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { CardChange } from '../../shared/thread-protocol.ts';

export class OpenCards {
  readonly #bySession = new Map<string, Set<string>>();

  note({ sessionId, callId, open }: CardChange): void {
    const cards = this.#bySession.get(sessionId);
    if (open) {
      if (cards === undefined) this.#bySession.set(sessionId, new Set([callId]));
      else cards.add(callId);
    } else if (cards?.delete(callId) === true && cards.size === 0) this.#bySession.delete(sessionId);
  }

  /** The frames that end the session's open cards as failed; it has none open afterwards. */
  closingFrames(sessionId: string): string {
    const cards = this.#bySession.get(sessionId) ?? [];
    this.#bySession.delete(sessionId);
    return [...cards].map((callId) => `${JSON.stringify(failedFrame(sessionId, callId))}\n`).join('');
  }
}

function failedFrame(sessionId: string, toolCallId: string): object {
  const update: ToolCallUpdate & { sessionUpdate: 'tool_call_update' } = {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: 'failed',
  };
  return { jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } };
}
