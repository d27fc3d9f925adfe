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
const toolMembers = new WeakMap<readonly ToolSchema[], Buffer>();

function toolsMember(tools: readonly ToolSchema[]): Buffer {
  const known = toolMembers.get(tools);
  if (known !== undefined) return known;
  const member = Buffer.from(`"tools":${JSON.stringify(tools.map(chatTool))},`);
  toolMembers.set(tools, member);
  return member;
}

/** What decides how the messages of a list are written down. */
interface ListForm extends MessageForm {
  readonly system: string;
  /** Many servers refuse an assistant message that says nothing, as a cancelled answer can leave behind. */
  readonly withBlank: boolean;
}

/** The body of a request, and what of it the next one of the conversation can take over. */
export interface ChatBody {
  /** The bytes to send, one behind the other: JSON. */
  readonly pieces: readonly Buffer[];
  /** Those of them that are the messages. */
  readonly list: readonly Buffer[];
  readonly form: ListForm;
  readonly messages: readonly ModelMessage[];
}

const listBegin = Buffer.from('"messages":[');
const listEnd = Buffer.from(']}');
/** More pieces are joined: each costs something at each request. */
const mostListPieces = 16;

/**
 * Writes the body. An output cap of `0` sends none.
 *
 * @param last what was sent before: where its messages are the first ones of this request, their bytes are taken over, since a long
 *   conversation is sent again at each step. Makes no difference to what is sent
 */
export function writeChatBody(config: ChatConfig, request: ModelRequest, last?: ChatBody): ChatBody {
  const { messages, tools } = request;
  const form = listForm(config, request);
  const known = last !== undefined && isSameForm(last.form, form) && beginsWith(messages, last.messages) ? last : undefined;
  const cap = Math.min(config.maxOutputTokens || Infinity, request.maxOutputTokens || Infinity);
  const head = JSON.stringify({
    model: config.model,
    stream: true,
    stream_options: { include_usage: true },
    ...thinkingFields(config, request),
    ...samplingFields(config.sampling),
    ...(cap === Infinity ? {} : { max_tokens: cap }),
  });
  const list = listPieces(known?.list ?? [], newItems(messages, known, form));
  const begin = Buffer.from(`${head.slice(0, -1)},`);
  return { pieces: [begin, ...(tools.length === 0 ? [] : [toolsMember(tools)]), listBegin, ...list, listEnd], list, form, messages };
}

function listForm(config: ChatConfig, { system, tools }: ModelRequest): ListForm {
  const deepseek = config.dialect === 'deepseek';
  return { system, withBlank: deepseek, withReasoning: deepseek && tools.length > 0, withImages: takesImages(config) };
}

/** The items of the list that are not in `known`, as JSON. */
function newItems(messages: readonly ModelMessage[], known: ChatBody | undefined, form: ListForm): object[] {
  const items: object[] = [];
  if (known === undefined && form.system !== '') items.push({ role: 'system', content: form.system });
  // A plain loop: this runs over the whole history where nothing is known.
  for (let index = known?.messages.length ?? 0; index < messages.length; index += 1) {
    const message = messages[index]!;
    if (form.withBlank || !isBlank(message)) items.push(chatMessage(message, form));
  }
  return items;
}

function listPieces(known: readonly Buffer[], items: readonly object[]): readonly Buffer[] {
  if (items.length === 0) return known;
  const text = JSON.stringify(items).slice(1, -1);
  const pieces = [...known, Buffer.from(known.length === 0 ? text : `,${text}`)];
  return pieces.length > mostListPieces ? [Buffer.concat(pieces)] : pieces;
}

function isSameForm(one: ListForm, other: ListForm): boolean {
  return (
    one.system === other.system &&
    one.withBlank === other.withBlank &&
    one.withReasoning === other.withReasoning &&
    one.withImages === other.withImages
  );
}

function beginsWith(messages: readonly ModelMessage[], beginning: readonly ModelMessage[]): boolean {
  return beginning.length <= messages.length && beginning.every((message, index) => isSameMessage(message, messages[index]!));
}

/** A message is never changed but replaced by another one. Those of results are made anew for each request. */
function isSameMessage(one: ModelMessage, other: ModelMessage): boolean {
  if (one === other) return true;
  return one.role === 'tool' && other.role === 'tool' && one.callId === other.callId && one.text === other.text;
}
