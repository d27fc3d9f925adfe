/**
 * The bytes of a planned answer. Frames of numbered tokens are made once and shared by all streams, chunked framing included.
 */
import { type AnswerPlan, tokenText } from './answer-plan.ts';

const head = '{"id":"chatcmpl-local","object":"chat.completion.chunk","created":1764460800,"model":"local-model",';

export function chunkJson(delta: object, finish: string | null = null, extra = ''): string {
  return `${head}"choices":[{"index":0,"delta":${JSON.stringify(delta)},"finish_reason":${JSON.stringify(finish)}}]${extra}}`;
}

export function usageJson(usage: object): string {
  return `${head}"choices":[],"usage":${JSON.stringify(usage)}}`;
}

/** One server-sent event. */
export function eventText(data: string, crlf = false): string {
  return crlf ? `data: ${data}\r\n\r\n` : `data: ${data}\n\n`;
}

/** Wraps bytes in HTTP's chunked framing, so that they can be written to the socket as they are. */
export function httpChunk(body: string | Buffer): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

const tokenFrames: Buffer[] = [];

/** The frame of numbered token `index`, framed for the socket. */
export function tokenFrame(index: number): Buffer {
  return (tokenFrames[index] ??= httpChunk(eventText(chunkJson({ content: tokenText(index) }))));
}

/** The data lines before the text: role, reasoning. */
export function openingData(plan: AnswerPlan): string[] {
  const field = plan.reasoningField ?? 'reasoning_content';
  const lines = [chunkJson({ role: 'assistant', content: '' })];
  for (let i = 0; i < (plan.reasoning ?? 0); i += 1) lines.push(chunkJson({ [field]: `why${i} ` }));
  return lines;
}

/** The data lines of the tool calls: every call's first piece, then its arguments in pieces, calls interleaved. */
export function toolData(plan: AnswerPlan): string[] {
  const tools = plan.tools ?? [];
  const lines = tools.map((tool, index) =>
    chunkJson({
      tool_calls: [
        { index, ...(tool.id === undefined ? {} : { id: tool.id }), type: 'function', function: { name: tool.name, arguments: '' } },
      ],
    }),
  );
  const longest = Math.max(0, ...tools.map((tool) => tool.arguments.length));
  for (let at = 0; at < longest; at += 12) {
    for (const [index, tool] of tools.entries()) {
      const piece = tool.arguments.slice(at, at + 12);
      if (piece !== '') lines.push(chunkJson({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  }
  return lines;
}

/** The data lines that end an answer: finish, usage. */
export function closingData(plan: AnswerPlan, sent: number): string[] {
  const finish = plan.finish ?? ((plan.tools ?? []).length > 0 ? 'tool_calls' : 'stop');
  const usage = plan.usage ?? { prompt_tokens: 100, completion_tokens: sent, total_tokens: 100 + sent, prompt_cache_hit_tokens: 64 };
  if (usage === false) return [chunkJson({}, finish)];
  if (plan.usageOn === 'finish-chunk') return [chunkJson({}, finish, `,"usage":${JSON.stringify(usage)}`)];
  return [chunkJson({}, finish), usageJson(usage)];
}
