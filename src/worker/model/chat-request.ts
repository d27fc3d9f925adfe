/**
 * The body of a chat-completions request.
 *
 * Equal histories give equal bytes, and a longer history only appends to its message list: providers cache by prefix.
 * Nothing here depends on the time, on a counter or on the order of a map.
 */
import type { ModelConfig } from '../../shared/config.ts';
import type { ToolCallRequest } from '../../shared/events.ts';
import { takesImages } from '../../shared/model-images.ts';
import type { Sampling } from '../../shared/session-options.ts';
import type { ModelMessage, ModelRequest, ToolSchema } from './model-adapter.ts';

export type ChatConfig = Extract<ModelConfig, { kind: 'openai-compatible' }>;

/**
 * Servers parse the arguments of earlier calls, and one broken call would make every later request fail. Broken ones
 * are sent back as an object that says so; they were never executed, and the tool's result has told the model.
 */
function historyArguments(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text;
  } catch {
    // Falls through: what follows is the answer to broken JSON too.
  }
  return JSON.stringify({ malformed_arguments: text.slice(0, 2000) });
}

function chatToolCall(call: ToolCallRequest): object {
  return { id: call.callId, type: 'function', function: { name: call.name, arguments: historyArguments(call.arguments) } };
}

function assistantMessage(message: Extract<ModelMessage, { role: 'assistant' }>, withReasoning: boolean): object {
  return {
    role: 'assistant',
    // Never null: DeepSeek refuses it, and with it every later request of the session.
    content: message.text,
    // Also when empty: with tools, thinking mode refuses a history where the field is missing.
    ...(withReasoning ? { reasoning_content: message.reasoning } : {}),
    ...(message.toolCalls.length === 0 ? {} : { tool_calls: message.toolCalls.map(chatToolCall) }),
  };
}

function userContent({ text, parts }: Extract<ModelMessage, { role: 'user' }>, withImages: boolean): string | object[] {
  if (parts === undefined || !withImages) return text;
  return parts.map((part) => {
    if (part.type === 'text') return part;
    return { type: 'image_url', image_url: { url: `data:${part.mimeType};base64,${part.data}` } };
  });
}

interface MessageForm {
  readonly withReasoning: boolean;
  readonly withImages: boolean;
}

function chatMessage(message: ModelMessage, { withReasoning, withImages }: MessageForm): object {
  if (message.role === 'user') return { role: 'user', content: userContent(message, withImages) };
  if (message.role === 'assistant') return assistantMessage(message, withReasoning);
  return { role: 'tool', tool_call_id: message.callId, content: message.text === '' ? '(no output)' : message.text };
}

function chatTool(tool: ToolSchema): object {
  return { type: 'function', function: { name: tool.name, description: tool.description, parameters: tool.parameters } };
}

function thinkingFields(config: ChatConfig, request: ModelRequest): object {
  if (config.dialect !== 'deepseek') return {};
  const thinking = request.thinking ?? config.thinking;
  if (thinking === 'off') return { thinking: { type: 'disabled' } };
  return { thinking: { type: 'enabled' }, reasoning_effort: thinking };
}

/** DeepSeek takes temperature and top_p while it thinks, and ignores them. */
function samplingFields({ temperature, topP, seed }: Sampling = {}): object {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(seed === undefined ? {} : { seed }),
  };
}

function isBlank(message: ModelMessage): boolean {
  return message.role === 'assistant' && message.text === '' && message.toolCalls.length === 0;
}

/** The tools of a session never change, and their text is the longest part of a young conversation's request. */
const toolTexts = new WeakMap<readonly ToolSchema[], string>();

function toolsText(tools: readonly ToolSchema[]): string {
  const known = toolTexts.get(tools);
  if (known !== undefined) return known;
  const text = JSON.stringify(tools.map(chatTool));
  toolTexts.set(tools, text);
  return text;
}

/** The JSON text to send. An output cap of `0` sends none. */
export function buildChatBody(config: ChatConfig, request: ModelRequest): string {
  const deepseek = config.dialect === 'deepseek';
  const form = { withReasoning: deepseek && request.tools.length > 0, withImages: takesImages(config) };
  const messages: object[] = request.system === '' ? [] : [{ role: 'system', content: request.system }];
  for (const message of request.messages) {
    // Many servers refuse an assistant message that says nothing, as a cancelled answer can leave behind.
    if (deepseek || !isBlank(message)) messages.push(chatMessage(message, form));
  }
  const cap = Math.min(config.maxOutputTokens || Infinity, request.maxOutputTokens || Infinity);
  const head = JSON.stringify({
    model: config.model,
    stream: true,
    stream_options: { include_usage: true },
    ...thinkingFields(config, request),
    ...samplingFields(config.sampling),
    ...(cap === Infinity ? {} : { max_tokens: cap }),
  });
  const tools = request.tools.length === 0 ? '' : `"tools":${toolsText(request.tools)},`;
  return `${head.slice(0, -1)},${tools}"messages":${JSON.stringify(messages)}}`;
}
