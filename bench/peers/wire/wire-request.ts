/**
 * What a request of any agent asks the bench's model server for: how many numbered words, at which pace, on which wire.
 *
 * The order is JSON in the prompt, since a prompt is all that every agent passes on. Requests that an agent makes on its own behalf (titles,
 * routing, memory, suggestions) are told by their form and answered `ok`: the work that is compared is the same for all.
 */

export type Wire = 'chat' | 'responses' | 'gemini';

export interface Order {
  readonly tokens: number;
  /** Milliseconds between two of them; `0` is as fast as the socket drains. */
  readonly delayMs: number;
}

export interface WireRequest {
  readonly wire: Wire;
  /** Absent where the agent asks for itself. */
  readonly order?: Order;
  /** Whether the answer is to be one JSON body. */
  readonly whole: boolean;
}

interface Part {
  readonly text?: unknown;
}

interface Entry {
  readonly role?: string;
  readonly type?: string;
  readonly content?: unknown;
  readonly parts?: readonly Part[];
}

/** The text of a prompt that orders `tokens` words. */
export function orderText({ tokens, delayMs }: Order): string {
  return JSON.stringify({ tokens, delayMs });
}

/** `undefined` for a path that is none of a model. */
export function readRequest(path: string, body: any): WireRequest | undefined {
  const [route = ''] = path.split('?');
  if (route.endsWith('/chat/completions')) {
    const messages: readonly Entry[] = body.messages ?? [];
    return { wire: 'chat', whole: body.stream !== true, ...orderIn(messages, isForItself(messages, body.tools)) };
  }
  if (route.endsWith('/responses')) {
    const input: readonly Entry[] = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : (body.input ?? []);
    return { wire: 'responses', whole: body.stream !== true, ...orderIn(input, isEmpty(body.tools)) };
  }
  if (!route.includes(':generateContent') && !route.includes(':streamGenerateContent')) return undefined;
  return { wire: 'gemini', whole: route.includes(':generateContent'), ...orderIn(body.contents ?? [], isEmpty(body.tools)) };
}

/** Without tools but with instructions: the floor agent has neither. */
function isForItself(messages: readonly Entry[], tools: unknown): boolean {
  return isEmpty(tools) && messages.some(({ role }) => role === 'system' || role === 'developer');
}

function isEmpty(tools: unknown): boolean {
  return !Array.isArray(tools) || tools.length === 0;
}

/** An order counts only in the last word of the user: earlier ones have been carried out. */
function orderIn(entries: readonly Entry[], forItself: boolean): { readonly order?: Order } {
  if (forItself) return {};
  const last = entries.findLast(({ role }) => role === 'user');
  const found = [...textOf(last).matchAll(/\{"tokens":(\d+),"delayMs":(\d+)\}/g)].at(-1);
  return found === undefined ? {} : { order: { tokens: Number(found[1]), delayMs: Number(found[2]) } };
}

function textOf(entry: Entry | undefined): string {
  const content = entry?.parts ?? entry?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: Part) => (typeof part.text === 'string' ? part.text : '')).join('\n');
}
