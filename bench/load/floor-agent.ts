/**
 * The floor: the least an ACP agent can do. One thread, no tools, no log; each delta of the model becomes one update.
 * Everything that our server costs beyond this is the price of threads, tools, log and isolation.
 *
 * With `history` as its second argument it keeps each conversation and sends it whole, as the model's API wants it; a new session
 * may begin with some turns that it never had.
 */
import { request } from 'node:http';
import { createParser } from 'eventsource-parser';
import { storedMessages } from './stored-sessions.ts';

const modelUrl = new URL(process.argv[2] ?? '');
const histories = process.argv[3] === 'history' ? new Map<string, object[]>() : undefined;
let buffered = Buffer.alloc(0);
let sessions = 0;

process.stdin.on('data', (chunk: Buffer) => {
  buffered = Buffer.concat([buffered, chunk]);
  for (let end = buffered.indexOf(10); end !== -1; end = buffered.indexOf(10)) {
    take(JSON.parse(buffered.subarray(0, end).toString('utf8')));
    buffered = buffered.subarray(end + 1);
  }
});
process.stdin.on('end', () => process.exit(0));

function take(frame: { id?: unknown; method?: string; params?: any }): void {
  switch (frame.method) {
    case 'initialize':
      answer(frame.id, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] });
      break;
    case 'session/new':
      sessions += 1;
      histories?.set(`floor-${sessions}`, storedMessages(frame.params._meta?.stored ?? 0));
      answer(frame.id, { sessionId: `floor-${sessions}` });
      break;
    case 'session/prompt':
      stream(frame.id, frame.params);
      break;
    case undefined:
    default:
      break;
  }
}

function stream(id: unknown, params: { sessionId: string; prompt: { text: string }[] }): void {
  const history = histories?.get(params.sessionId);
  const said = { role: 'user', content: params.prompt[0]?.text };
  history?.push(said);
  let whole = '';
  const body = JSON.stringify({ model: 'floor', stream: true, messages: history ?? [said] });
  const call = request(modelUrl, { method: 'POST', headers: { 'content-type': 'application/json' } }, (response) => {
    const parser = createParser({
      onEvent: ({ data }) => {
        if (data === '[DONE]') return;
        const text = JSON.parse(data).choices[0]?.delta?.content;
        if (typeof text === 'string' && text !== '') {
          if (history !== undefined) whole += text;
          write({
            jsonrpc: '2.0',
            method: 'session/update',
            params: { sessionId: params.sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } },
          });
        }
      },
    });
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => parser.feed(chunk));
    response.on('end', () => {
      history?.push({ role: 'assistant', content: whole });
      answer(id, { stopReason: 'end_turn' });
    });
  });
  call.end(body);
}

function answer(id: unknown, result: object): void {
  write({ jsonrpc: '2.0', id, result });
}

function write(frame: object): void {
  process.stdout.write(`${JSON.stringify(frame)}\n`);
}
