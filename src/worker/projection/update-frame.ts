/**
 * The text of a `session/update` frame: one line of JSON, ended by LF, ready for stdout.
 *
 * Streamed text is the hot path: its frame costs one `JSON.stringify` of the text between two constant strings.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';

export type ChunkKind = 'text' | 'reasoning';

const chunkUpdate = { text: 'agent_message_chunk', reasoning: 'agent_thought_chunk' } as const;
const chunkSuffix = '}}}}\n';
/** An escaped backslash is matched first, so that the text `\ud800` written out by a model stays what it is. */
const escapedSurrogate = /\\\\|\\ud[89a-f][0-9a-f]{2}/g;

/** Makes the frames of one session. */
export class UpdateFrames {
  readonly #sessionId: string;
  readonly #prefixes: Record<ChunkKind, { messageId: string; prefix: string } | undefined> = { text: undefined, reasoning: undefined };

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** Any update, as a frame. */
  frame(update: SessionUpdate): string {
    const params = { sessionId: this.#sessionId, update };
    return `${wellFormedJson({ jsonrpc: '2.0', method: 'session/update', params })}\n`;
  }

  /** A text or thought chunk, the same as {@link frame} gives but for the order of its members. */
  chunk(kind: ChunkKind, messageId: string, text: string): string {
    let cached = this.#prefixes[kind];
    if (cached === undefined || cached.messageId !== messageId) {
      cached = { messageId, prefix: this.#chunkPrefix(kind, messageId) };
      this.#prefixes[kind] = cached;
    }
    return cached.prefix + wellFormedJson(text) + chunkSuffix;
  }

  #chunkPrefix(kind: ChunkKind, messageId: string): string {
    const sessionId = wellFormedJson(this.#sessionId);
    const update = `"sessionUpdate":"${chunkUpdate[kind]}","messageId":${wellFormedJson(messageId)}`;
    return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":${sessionId},"update":{${update},"content":{"type":"text","text":`;
  }
}

/**
 * JSON without lone surrogates. A model's server may cut a character between two deltas; strict parsers refuse the
 * escape that JSON.stringify writes then, and with it the whole frame.
 */
function wellFormedJson(value: unknown): string {
  const json = JSON.stringify(value);
  if (!json.includes('\\ud')) return json;
  return json.replace(escapedSurrogate, (match) => (match === '\\\\' ? match : '\ufffd'));
}
