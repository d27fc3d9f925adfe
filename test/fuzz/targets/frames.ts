/**
 * Bytes of a client: framing, transport and the whole agent app with its checks of params, over sessions that only answer.
 *
 * An independent reading of the same bytes says how often each id must be answered; cut anywhere they must give the same.
 */
import { PassThrough, Writable } from 'node:stream';
import type { ServerConfig } from '../../../src/shared/config.ts';
import { ServerError } from '../../../src/shared/errors.ts';
import { type AgentAppParts, createAgentApp } from '../../../src/main/acp/agent-app.ts';
import { Credentials } from '../../../src/main/acp/auth/credentials.ts';
import { loadConfig } from '../../../src/main/config/load-config.ts';
import { Diagnostics } from '../../../src/main/diagnostics.ts';
import type { SessionTable } from '../../../src/main/sessions/session-table.ts';
import { createAgentStream } from '../../../src/main/transport/agent-stream.ts';
import { FrameWriter } from '../../../src/main/transport/frame-writer.ts';
import { validateAgentFrame } from '../../support/acp-schema.ts';
import { expect, type FuzzTarget } from '../fuzz-target.ts';
import { hostileJson, objectText, spoilJson, texts } from '../hostile-values.ts';
import { pieces } from '../mutate.ts';
import type { Random } from '../random.ts';

const maxFrameBytes = 8192;
const probeId = 'the probe behind it all';
const hello = { jsonrpc: '2.0', id: 'hello', method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } };
const probe = `\n${JSON.stringify({ jsonrpc: '2.0', id: probeId, method: '_none' })}\n`;

const text = [{ type: 'text', text: 'hi' }];
const paramsOf: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: false }, terminal: true },
    clientInfo: { name: 'a', version: '1' },
  },
  authenticate: { methodId: 'api-key' },
  logout: {},
  'session/new': {
    cwd: '/',
    mcpServers: [{ name: 'm', command: '/bin/m', args: ['a'], env: [{ name: 'A', value: 'b' }] }],
    _meta: { 'dsh-acp': { budget: { maxSteps: 3 }, tools: ['read'] } },
  },
  'session/load': { sessionId: 's1', cwd: '/', mcpServers: [] },
  'session/resume': { sessionId: 's1', cwd: '/', mcpServers: [{ type: 'http', name: 'h', url: 'http://127.0.0.1:1/x', headers: [] }] },
  'session/list': { cwd: '/', cursor: 'abc' },
  'session/fork': { sessionId: 's1', cwd: '/' },
  'session/delete': { sessionId: 's1' },
  'session/close': { sessionId: 's1' },
  'session/prompt': {
    sessionId: 's1',
    prompt: [
      ...text,
      { type: 'resource_link', uri: 'file:///a', name: 'a' },
      { type: 'resource', resource: { uri: 'file:///b', text: 'b' } },
    ],
    _meta: { 'dsh-acp': { key: 'k1' } },
  },
  'session/set_mode': { sessionId: 's1', modeId: 'default' },
  'session/set_config_option': { sessionId: 's1', configId: 'mode', value: 'default' },
  '_session/steer': { sessionId: 's1', prompt: text },
  '_session/rewind': { sessionId: 's1' },
  _status: {},
  'session/cancel': { sessionId: 's1' },
  '$/cancel_request': { requestId: 1 },
};
const methods = Object.keys(paramsOf);
const ids = [
  '1',
  '2',
  '"1"',
  'null',
  '-0',
  '1.5',
  '1e400',
  '9007199254740993',
  '"\\ud800"',
  '"__proto__"',
  '""',
  'true',
  '{}',
  '[]',
  `"${'i'.repeat(2000)}"`,
];

export const framesTarget: FuzzTarget = {
  name: 'frames',
  maxInputBytes: 64 * 1024,
  seeds: methods.map((method, id) => Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: paramsOf[method] })}\n`)),
  generate: (random) => Buffer.concat(random.list(6, () => Buffer.concat([line(random), ending(random)]))),
  async check(input, random) {
    const wanted = wantedAnswers(input);
    for (const parts of [[input], pieces(random, input, input.length < 300)]) compare(await answersTo(parts), wanted);
  },
};

function ending(random: Random): Buffer {
  return Buffer.from(random.pick(['\n', '\n', '\n', '\r\n', '\n\n', ' \n', '\n \t\r\n']));
}

function line(random: Random): Buffer {
  const method = random.pick(methods);
  const params = random.chance(2) ? spoilJson(random, paramsOf[method]) : JSON.stringify(paramsOf[method]);
  switch (random.below(12)) {
    case 0:
      return Buffer.from(hostileJson(random, 3));
    case 1:
      return Buffer.from(
        `[${objectText([
          ['jsonrpc', '"2.0"'],
          ['method', JSON.stringify(method)],
        ])}]`,
      );
    case 2:
      return Buffer.from(random.chance(2) ? '['.repeat(100_000) : '{"a":'.repeat(random.pick([900, 1001, 1600])));
    case 3:
      return Buffer.from(`\ufeff${frame(random, method, params)}`);
    case 4:
      // Around the greatest length of a frame.
      return Buffer.from(padded(frame(random, method, params), maxFrameBytes - 2 + random.below(5)));
    case 5:
      return Buffer.from(
        objectText([
          ['jsonrpc', '"2.0"'],
          ['id', random.pick(ids)],
          [random.pick(['result', 'error', 'x']), hostileJson(random)],
        ]),
      );
    case 6:
      return Buffer.concat([
        Buffer.from('{"jsonrpc":"2.0","id":7,"method":"_x'),
        Buffer.from([0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
        Buffer.from('"}'),
      ]);
    default:
      return Buffer.from(frame(random, method, params));
  }
}

function frame(random: Random, method: string, params: string): string {
  const members: [string, string][] = [
    ['jsonrpc', random.chance(12) ? hostileJson(random, 0) : '"2.0"'],
    ['method', random.chance(12) ? hostileJson(random, 0) : JSON.stringify(random.chance(8) ? random.pick(texts) : method)],
    ['params', params],
  ];
  if (!random.chance(6)) members.push(['id', random.pick(ids)]);
  if (random.chance(6)) members.push([random.pick(['id', 'method', '__proto__', 'result', 'constructor']), hostileJson(random)]);
  return objectText(random.chance(2) ? members.toReversed() : members);
}

function padded(json: string, bytes: number): string {
  const missing = bytes - Buffer.byteLength(json);
  return missing <= 0 ? json : `${json.slice(0, -1)}${' '.repeat(missing)}}`;
}

/** How many answers each id must get, read without any of the code under test. */
function wantedAnswers(input: Buffer): Map<string, number> {
  const wanted = new Map<string, number>();
  const add = (key: string): void => void wanted.set(key, (wanted.get(key) ?? 0) + 1);
  for (const bytes of linesOf(Buffer.concat([input, Buffer.from(probe)]))) {
    if (bytes.length > maxFrameBytes) add('null');
    else for (const key of wantedOfLine(bytes)) add(key);
  }
  return wanted;
}

function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return lines;
}

function wantedOfLine(bytes: Buffer): string[] {
  const whole = bytes.toString('utf8').replace(/\r$/, '');
  // A blank that JSON does not know is no blank.
  if (whole.trim() === '' && !(whole.charCodeAt(0) > 0x20)) return [];
  let value: unknown;
  try {
    value = JSON.parse(whole.replace(/^\ufeff/, ''));
  } catch {
    return ['null'];
  }
  if (depthOf(value) > 1000) return ['null'];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return ['null'];
  const { id } = value as { id?: unknown };
  const isId = id === null || typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));
  const hasId = Object.hasOwn(value, 'id');
  if (!Object.hasOwn(value, 'method')) return hasId || Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error') ? [] : ['null'];
  const { jsonrpc, method } = value as { jsonrpc?: unknown; method: unknown };
  if (hasId) return [isId ? JSON.stringify(id) : 'null'];
  return jsonrpc === '2.0' && typeof method === 'string' ? [] : ['null'];
}

function depthOf(value: unknown): number {
  let depth = 0;
  for (let level = [value]; level.length > 0; depth += 1)
    level = level
      .flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
      .filter((one) => typeof one === 'object' && one !== null);
  return depth;
}

function compare(found: Map<string, number>, wanted: Map<string, number>): void {
  for (const key of new Set([...found.keys(), ...wanted.keys()])) {
    const [got, want] = [found.get(key) ?? 0, wanted.get(key) ?? 0];
    expect(got === want, () => `the id ${key.slice(0, 60)} was answered ${got} times instead of ${want}`);
  }
}

/** Answers by id, `initialize` at the front left out; every frame was checked. */
async function answersTo(parts: readonly Buffer[]): Promise<Map<string, number>> {
  // The SDK says there what it thinks of notifications; the server sends that to its own log.
  console.error = () => undefined;
  const found = new Map<string, number>();
  const input = new PassThrough();
  let tail = '';
  let finish: () => void = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const problems: string[] = [];
  const take = (written: string): void => {
    const frame = JSON.parse(written) as { id?: unknown; method?: unknown };
    problems.push(...validateAgentFrame(frame), ...(/\\n {4}at /.test(written) ? ['it holds a stack'] : []));
    if (frame.method !== undefined) return;
    const key = JSON.stringify(frame.id);
    found.set(key, (found.get(key) ?? 0) + 1);
    if (frame.id === probeId) finish();
  };
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const lines = (tail + chunk.toString()).split('\n');
      tail = lines.pop() ?? '';
      for (const one of lines) take(one);
      done();
    },
  });
  const writer = new FrameWriter(output, { stalledReaderMs: 60_000, onBroken: (why) => problems.push(`the output broke: ${why}`) });
  const stream = createAgentStream({ input, writer, maxFrameBytes, onEnd: () => undefined, onNote: () => undefined });
  const connection = createAgentApp(await stubParts()).connect(stream);
  input.write(`${JSON.stringify(hello)}\n`);
  for (const part of parts) input.write(part);
  input.write(probe);
  await finished;
  await stream.allAnswered();
  await writer.idle();
  stream.stop();
  connection.close();
  expect(tail === '', () => `output ends with half a line: ${tail}`);
  expect(problems.length === 0, () => problems.join('; '));
  const hellos = (found.get('"hello"') ?? 0) - 1;
  if (hellos === 0) found.delete('"hello"');
  else found.set('"hello"', hellos);
  return found;
}

let config: Promise<ServerConfig> | undefined;

/** The settings of a server with the scripted model, which are read from nowhere. */
async function readSettings(): Promise<ServerConfig> {
  const flags = new Map([['model', 'scripted']] as const);
  const loaded = await loadConfig({
    flags,
    file: undefined,
    env: {},
    cwd: '/',
    home: '/nowhere',
    cores: 2,
    version: '1',
    ripgrepPath: undefined,
  });
  return loaded.config;
}

/** Sessions that answer at once; what would need a thread says that there is no such session. */
async function stubParts(): Promise<AgentAppParts> {
  const settings = await (config ??= readSettings());
  const usage = { steps: 0, toolCalls: 0, elapsedMs: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0 };
  const session = {
    identity: { id: 's1', profile: 'editor', cwd: '/' },
    settings: settings.session,
    chosen: {},
    prompt: async () => ({ stopReason: 'end_turn', usage, text: 'hi' }),
    cancel: () => undefined,
  };
  const known: Record<string, unknown> = {
    find: (id: string) => (id === 's1' ? session : undefined),
    get: (id: string) => (id === 's1' ? session : refuse()),
    list: () => ({ sessions: [] }),
    status: () => ({}),
    // The table is handed over by a promise.
    // oxlint-disable-next-line unicorn/no-thenable -- says that it is none
    then: undefined,
  };
  const table = new Proxy(known, {
    get: (target, name) => (typeof name === 'string' && Object.hasOwn(target, name) ? target[name] : async () => refuse()),
  }) as unknown as SessionTable;
  return {
    config: settings,
    diagnostics: new Diagnostics('silent', () => undefined),
    credentials: new Credentials({ configured: settings.session, keyVariable: 'KEY' }),
    launch: { command: 'x', args: [], env: {} },
    isSupervised: true,
    sessions: async () => table,
    sessionsIfStarted: () => table,
    onInitialize: () => undefined,
    commands: { behind: (answer) => answer, promptBegins: () => undefined },
  };
}

function refuse(): never {
  throw new ServerError('SESSION_NOT_FOUND', 'There is no such session.', { data: { sessionId: 's1' } });
}
