/**
 * The bytes of an answer on each of the three wires that the agents speak: streamed chat completions, streamed responses, and Gemini's
 * streamed content. The frames of numbered words are made once. No comments anywhere: one of the agents takes them for broken JSON.
 */
import { chunkJson, eventText, httpChunk, tokenFrame, usageJson } from '../../../test/support/answer-frames.ts';
import { tokenText } from '../../../test/support/answer-plan.ts';
import type { Wire } from './wire-request.ts';

/** All texts are framed for the socket, HTTP's chunks included. */
export interface WireFrames {
  readonly opening: Buffer;
  /** Word number `index`. */
  token(index: number): Buffer;
  /** Ends an answer of `words`. */
  closing(words: readonly string[]): Buffer;
  /** A streamed delta of any text. */
  delta(text: string): Buffer;
  /** The same as one JSON body, not framed. */
  whole(text: string): string;
}

/** What every answer is said to have cost: small, so that no agent begins to shorten its history. */
const inputTokens = 100;

export function numberedWords(count: number): string[] {
  return Array.from({ length: count }, (_, index) => tokenText(index));
}

const chat: WireFrames = {
  opening: httpChunk(eventText(chunkJson({ role: 'assistant', content: '' }))),
  token: tokenFrame,
  delta: (text) => httpChunk(eventText(chunkJson({ content: text }))),
  closing: (words) =>
    httpChunk([chunkJson({}, 'stop'), usageJson(chatUsage(words.length)), '[DONE]'].map((data) => eventText(data)).join('')),
  whole: (text) =>
    JSON.stringify({
      id: 'chatcmpl-local',
      object: 'chat.completion',
      created: 1764460800,
      model: 'local-model',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: chatUsage(1),
    }),
};

function chatUsage(output: number): object {
  return { prompt_tokens: inputTokens, completion_tokens: output, total_tokens: inputTokens + output };
}

const item = 'msg_local';

function responseEvent(value: { readonly type: string }): string {
  return `event: ${value.type}\n${eventText(JSON.stringify(value))}`;
}

function message(text: string | undefined): object {
  const content = text === undefined ? [] : [{ type: 'output_text', text, annotations: [] }];
  return { type: 'message', id: item, role: 'assistant', status: text === undefined ? 'in_progress' : 'completed', content };
}

function response(status: 'in_progress' | 'completed', text?: string, output = 1): object {
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + output,
  };
  const ended = text === undefined ? { output: [] } : { output: [message(text)], usage };
  return { id: 'resp_local', object: 'response', created_at: 1764460800, model: 'local-model', status, ...ended };
}

function responseDelta(text: string): Buffer {
  const place = { item_id: item, output_index: 0, content_index: 0 };
  return httpChunk(responseEvent({ type: 'response.output_text.delta', ...place, delta: text } as { type: string }));
}

const responses: WireFrames = {
  opening: httpChunk(
    [
      { type: 'response.created', response: response('in_progress') },
      { type: 'response.output_item.added', output_index: 0, item: message(undefined) },
    ]
      .map(responseEvent)
      .join(''),
  ),
  token: kept(responseDelta),
  delta: responseDelta,
  closing: (words) => {
    const text = words.join('');
    return httpChunk(
      [
        { type: 'response.output_item.done', output_index: 0, item: message(text) },
        { type: 'response.completed', response: response('completed', text, words.length) },
      ]
        .map(responseEvent)
        .join(''),
    );
  },
  whole: (text) => JSON.stringify(response('completed', text)),
};

function geminiJson(text: string, output?: number): string {
  const content = { role: 'model', parts: [{ text }] };
  const candidate = { content, index: 0, ...(output === undefined ? {} : { finishReason: 'STOP' }) };
  const usage = { promptTokenCount: inputTokens, candidatesTokenCount: output ?? 0, totalTokenCount: inputTokens + (output ?? 0) };
  return JSON.stringify({ candidates: [candidate], usageMetadata: usage, modelVersion: 'local-model', responseId: 'resp-local' });
}

function geminiDelta(text: string): Buffer {
  return httpChunk(eventText(geminiJson(text)));
}

const gemini: WireFrames = {
  opening: Buffer.alloc(0),
  token: kept(geminiDelta),
  delta: geminiDelta,
  // The reason of the end comes with an empty text, as the words before it did not know that they were the last.
  closing: (words) => httpChunk(eventText(geminiJson('', words.length))),
  whole: (text) => geminiJson(text, 1),
};

function kept(make: (text: string) => Buffer): (index: number) => Buffer {
  const frames: Buffer[] = [];
  return (index) => (frames[index] ??= make(tokenText(index)));
}

export const framesOf: Readonly<Record<Wire, WireFrames>> = { chat, responses, gemini };
