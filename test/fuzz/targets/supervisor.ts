/**
 * The lines that a supervisor passes on between client and server: nothing may be lost, changed or moved, and what it reads of
 * them must be what they say.
 */
import { OutputScanner } from '../../../src/main/supervisor/output-scanner.ts';
import { idKey, parseFrame } from '../../../src/main/supervisor/frames.ts';
import { readRequest } from '../../../src/main/supervisor/read-request.ts';
import { isNestedDeeperThan } from '../../../src/shared/framing/nesting-limit.ts';
import { expect, type FuzzTarget } from '../fuzz-target.ts';
import { deepJson, hostileJson, objectText, spoilJson, texts } from '../hostile-values.ts';
import { pieces } from '../mutate.ts';
import type { Random } from '../random.ts';

const session = '0192f3c4-1111-7abc-8def-0123456789ab';
const updates = [
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'hi' } },
  { sessionUpdate: 'tool_call', toolCallId: 'c', title: 't', status: 'pending' },
  { sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'in_progress' },
  { sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'completed' },
  { sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'failed' },
];
const requests = [
  { method: 'session/prompt', params: { sessionId: session, prompt: [{ type: 'text', text: 'hi' }], _meta: { 'dsh-acp': { key: 'k' } } } },
  { method: 'session/prompt', params: { sessionId: session, prompt: [{ type: 'text', text: '/help' }] } },
  { method: 'session/new', params: { cwd: '/', mcpServers: [] } },
  { method: 'session/load', params: { sessionId: session, cwd: '/', mcpServers: [] } },
  { method: 'initialize', params: { protocolVersion: 1 } },
];

export const supervisorTarget: FuzzTarget = {
  name: 'supervisor',
  maxInputBytes: 256 * 1024,
  seeds: [],
  generate: (random) => Buffer.from(random.list(8, () => `${line(random)}${random.pick(['\n', '\n', '\r\n', '\n\n'])}`).join('')),
  check(input, random) {
    const whole = scan([input]);
    for (const parts of [pieces(random, input), pieces(random, input, true)]) {
      const cut = scan(parts);
      expect(
        cut.text === whole.text && JSON.stringify(cut.lines) === JSON.stringify(whole.lines),
        () => 'cut otherwise, other lines are looked at',
      );
    }
    const end = input.lastIndexOf(10) + 1;
    expect(whole.text === input.subarray(0, end).toString('utf8'), () => 'what is passed on is not what came');
    for (const text of input.toString('utf8').split('\n')) look(text);
    for (const text of whole.plain.split('\n').filter((one) => one !== '')) judgePlain(text);
  },
};

function line(random: Random): string {
  const update = random.pick(updates);
  switch (random.below(8)) {
    case 0:
      return hostileJson(random, 3);
    case 1:
      return random.pick(texts).replaceAll('\n', ' ');
    case 2:
    case 3: {
      const request = random.pick(requests);
      const id = random.pick(['1', '"a"', 'null', '1.5', '{}', '1e400']);
      const params = random.chance(8)
        ? `{"sessionId":"${session}","x":${deepJson(random)}}`
        : random.chance(2)
          ? spoilJson(random, request.params)
          : JSON.stringify(request.params);
      return objectText([
        ['jsonrpc', '"2.0"'],
        ['id', id],
        ['method', JSON.stringify(request.method)],
        ['params', params],
      ]);
    }
    case 4:
      return objectText([
        ['jsonrpc', '"2.0"'],
        ['id', hostileJson(random, 0)],
        [random.pick(['result', 'error']), hostileJson(random)],
      ]);
    default:
      return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${session}","update":${random.chance(2) ? spoilJson(random, update) : JSON.stringify(update)}}}`;
  }
}

function scan(parts: readonly Buffer[]): { readonly text: string; readonly plain: string; readonly lines: readonly string[] } {
  const all: string[] = [];
  const plain: string[] = [];
  const lines: string[] = [];
  const scanner = new OutputScanner({
    plain: (bytes) => {
      all.push(bytes.toString('utf8'));
      plain.push(bytes.toString('utf8'));
    },
    line: (one) => {
      all.push(`${one}\n`);
      lines.push(one);
    },
  });
  for (const part of parts) scanner.push(part);
  return { text: all.join(''), plain: plain.join(''), lines };
}

/** A line that nobody looks at opens or closes no card and answers nothing. */
function judgePlain(text: string): void {
  const frame = parseFrame(text) as
    | { id?: unknown; method?: unknown; params?: { update?: { sessionUpdate?: unknown; status?: unknown } } }
    | undefined;
  if (frame === undefined || isDeep(text) || JSON.stringify(frame) !== text.trim() || frame.method !== 'session/update') return;
  const { sessionUpdate, status } = frame.params?.update ?? {};
  // The server writes an update's kind first; what a damaged line holds elsewhere is not looked for.
  if (
    typeof sessionUpdate !== 'string' ||
    !text.includes(`"params":{"sessionId":"${session}","update":{"sessionUpdate":"${sessionUpdate}"`)
  )
    return;
  expect(sessionUpdate !== 'tool_call', () => `a card was opened unseen: ${text}`);
  expect(
    sessionUpdate !== 'tool_call_update' || (status !== 'completed' && status !== 'failed'),
    () => `a card was closed unseen: ${text}`,
  );
}

/** A request that is passed on says what it said, with no more than members of `_meta` added. */
function look(text: string): void {
  // As the supervisor does before it reads a line of the client.
  const frame = isNestedDeeperThan(text, 1000) ? undefined : parseFrame(text);
  if (frame === undefined || typeof frame.method !== 'string') return;
  idKey(frame.id);
  const request = readRequest({ ...frame, method: frame.method }, text, () => 'new-key');
  if (request.line === text || isDeep(text)) return;
  const passed = JSON.parse(request.line) as { params: { _meta: Record<string, unknown> } };
  const given = JSON.parse(text.replace(/^\ufeff/, '')) as { params: { _meta?: Record<string, unknown> } };
  const bare = ({ params, ...rest }: { params: { _meta?: unknown } }): string =>
    JSON.stringify({ ...rest, params: { ...params, _meta: undefined } });
  expect(bare(passed) === bare(given), () => `the request was changed: ${request.line}`);
  for (const [name, value] of Object.entries(given.params._meta ?? {}))
    if (name !== 'dsh-acp')
      expect(JSON.stringify(passed.params._meta[name]) === JSON.stringify(value), () => `_meta was changed: ${request.line}`);
}

function isDeep(text: string): boolean {
  return text.includes('[['.repeat(300)) || text.includes('{"a":'.repeat(300));
}
