/**
 * The tool cards that each session of a thread has open at the client, so that a thread's death leaves none spinning.
 */
import type { ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { CardChange } from '../../shared/thread-protocol.ts';

interface OpenCard {
  readonly isTerminal: boolean;
}

/** Ended cards that are remembered; a question about one of them is at most some messages behind its end. */
const mostEnded = 256;

export class OpenCards {
  readonly #bySession = new Map<string, Map<string, OpenCard>>();
  readonly #ended = new Set<string>();

  note({ sessionId, callId, open, terminal }: CardChange): void {
    const cards = this.#bySession.get(sessionId);
    this.#noteEnd(`${sessionId}/${callId}`, !open);
    if (open) {
      const card = { isTerminal: terminal === true };
      if (cards === undefined) this.#bySession.set(sessionId, new Map([[callId, card]]));
      else cards.set(callId, card);
    } else if (cards?.delete(callId) === true && cards.size === 0) this.#bySession.delete(sessionId);
  }

  /** Whether the card has reached its terminal status, lately. */
  hasEnded(sessionId: string, callId: string): boolean {
    return this.#ended.has(`${sessionId}/${callId}`);
  }

  #noteEnd(key: string, hasEnded: boolean): void {
    this.#ended.delete(key);
    if (!hasEnded) return;
    this.#ended.add(key);
    if (this.#ended.size <= mostEnded) return;
    for (const oldest of this.#ended) {
      this.#ended.delete(oldest);
      break;
    }
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
