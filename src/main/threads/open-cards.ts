/**
 * The tool cards that each session of a thread has open at the client, so that a thread's death leaves none spinning.
 */
import type { ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { CardChange } from '../../shared/thread-protocol.ts';

interface OpenCard {
  readonly isTerminal: boolean;
}

export class OpenCards {
  readonly #bySession = new Map<string, Map<string, OpenCard>>();

  note({ sessionId, callId, open, terminal }: CardChange): void {
    const cards = this.#bySession.get(sessionId);
    if (open) {
      const card = { isTerminal: terminal === true };
      if (cards === undefined) this.#bySession.set(sessionId, new Map([[callId, card]]));
      else cards.set(callId, card);
    } else if (cards?.delete(callId) === true && cards.size === 0) this.#bySession.delete(sessionId);
  }

  /**
   * The ids of the session's open cards, and the frames that end them as failed; it has none open afterwards. `words` take the
   * place of what a card shows, but for a terminal, which stays.
   */
  close(sessionId: string, words?: string): { readonly callIds: readonly string[]; readonly frames: string } {
    const cards = [...(this.#bySession.get(sessionId) ?? [])];
    this.#bySession.delete(sessionId);
    const frames = cards.map(([callId, card]) => `${JSON.stringify(failedFrame(sessionId, callId, card, words))}\n`).join('');
    return { callIds: cards.map(([callId]) => callId), frames };
  }
}

function failedFrame(sessionId: string, toolCallId: string, { isTerminal }: OpenCard, words: string | undefined): object {
  const update: ToolCallUpdate & { sessionUpdate: 'tool_call_update' } = {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: 'failed',
    ...(words === undefined || isTerminal ? {} : { content: [{ type: 'content', content: { type: 'text', text: words } }] }),
    // Else the client shows its command as running for ever.
    ...(isTerminal ? { _meta: { terminal_exit: { terminal_id: toolCallId, exit_code: null, signal: null } } } : {}),
  };
  return { jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } };
}
