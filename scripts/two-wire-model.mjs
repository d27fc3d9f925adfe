/**
 * A loopback model server with one short answer in two wire formats, for agents of others: streamed chat completions, and
 * Gemini's streamed content. What it answers is fixed: `answer`.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';

export const answer = 'The local model has answered.';
const usage = { input: 70, output: 6 };

/** Starts it; gives its port and a function that ends it. */
export async function startTwoWireModel() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.url?.includes('streamGenerateContent')) streamContent(response);
      else if (request.url?.includes('generateContent') || request.url?.includes('countTokens')) json(response, content(answer, true));
      else if (request.url?.endsWith('/chat/completions')) streamChat(response);
      else json(response, { object: 'list', data: [{ id: 'mock', object: 'model' }] });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: server.address().port,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const words = answer.split(/(?<= )/);

function streamChat(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (delta, finish, extra = {}) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    response.write(
      `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'mock', choices, ...extra })}\n\n`,
    );
  };
  for (const word of words) chunk({ role: 'assistant', content: word }, null);
  chunk({}, 'stop', {
    usage: { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output },
  });
  response.end('data: [DONE]\n\n');
}

function content(text, last) {
  const candidate = { content: { role: 'model', parts: [{ text }] }, index: 0, ...(last ? { finishReason: 'STOP' } : {}) };
  const usageMetadata = {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output,
    totalTokenCount: usage.input + usage.output,
  };
  return { candidates: [candidate], usageMetadata };
}

function streamContent(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [index, word] of words.entries()) response.write(`data: ${JSON.stringify(content(word, index === words.length - 1))}\n\n`);
  response.end();
}

function json(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}
