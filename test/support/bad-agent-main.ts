/**
 * An ACP agent that does one thing wrong, as a process of its own: the argument names it. Without one it does nothing wrong.
 *
 * Written by hand, since a library would keep it from misbehaving. It answers a prompt with its own text, in two pieces.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const [, , behaviour = 'good', detail = ''] = process.argv;

type Message = { id?: number; method?: string; params?: any; result?: any; error?: any };

let lastId = 0;
let lastSession = 0;
const answers = new Map<number, (message: Message) => void>();

function send(message: object): void {
  if (behaviour === 'noise') process.stdout.write('starting up...\n{"level":"info"}\n\n[1,2]\n"text"\nwarning: {half\n');
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

const update = (sessionId: string, content: object): void => send({ method: 'session/update', params: { sessionId, update: content } });
const say = (sessionId: string, text: string, more: object = {}): void =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more });

async function request(method: string, params: object): Promise<Message> {
  lastId += 1;
  const id = lastId;
  send({ id, method, params });
  return await new Promise((resolve) => answers.set(id, resolve));
}

const options = [
  { optionId: 'always', name: 'Always', kind: 'allow_always' },
  { optionId: 'once', name: 'Once', kind: 'allow_once' },
  { optionId: 'never', name: 'Never', kind: 'reject_always' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];

async function askPermission(sessionId: string, more: object = {}): Promise<string> {
  const toolCall = { toolCallId: 'call-1', title: 'rm -rf /', kind: 'execute', rawInput: { command: 'rm -rf /' } };
  const { result } = await request('session/request_permission', { sessionId, toolCall, options, ...more });
  return result.outcome.optionId ?? result.outcome.outcome;
}

function initializeResult(): object {
  const meta = (value: object): object => ({ agentCapabilities: { _meta: { 'dsh-acp': value } } });
  switch (behaviour) {
    case 'wrong-version':
      return { protocolVersion: 2 };
    case 'takes-all':
      return {
        protocolVersion: 1,
        ...meta({
          subagent: { persona: true, tools: true, depth: true, outputSchema: true },
          extensions: { 'session/new': ['budget', 'maxDepth', 'mode'] },
        }),
      };
    case 'takes-depth':
      return { protocolVersion: 1, ...meta({ subagent: { depth: true, persona: 'yes' } }) };
    case 'closes':
      return { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { close: {} } } };
    default:
      return { protocolVersion: 1, agentCapabilities: {} };
  }
}

const flood = 'x'.repeat(64 * 1024);
let cancelled: (() => void) | undefined;

/** What the agent does with a prompt; the text is the answer's. `undefined` gives none. */
const prompts: Record<string, (sessionId: string, params: any, id: number) => Promise<object | undefined>> = {
  good: async (sessionId, { prompt }) => {
    say(sessionId, 'you said: ');
    say(sessionId, prompt[0].text);
    return { stopReason: 'end_turn' };
  },
  /** Hangs until it is cancelled. */
  slow: async (sessionId) => {
    say(sessionId, 'so far');
    await new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    return { stopReason: 'cancelled' };
  },
  mute: async (sessionId) => {
    say(sessionId, 'one word');
    return undefined;
  },
  'dies-after': async (sessionId) => {
    say(sessionId, 'half an ans');
    process.stderr.write('boom: key sk-abcdef0123456789abcdef and CANARY-SECRET-VALUE are wrong\n');
    setImmediate(() => process.exit(7));
    return undefined;
  },
  'killed-after': async (sessionId) => {
    say(sessionId, 'half');
    setImmediate(() => process.kill(process.pid, 'SIGKILL'));
    return undefined;
  },
  'refuses-prompt': async () => {
    const data = { usage: { inputTokens: 7, outputTokens: 1 } };
    throw Object.assign(new Error('no credit left for sk-abcdef0123456789abcdef'), { code: -32603, data });
  },
  late: async (sessionId, _params, id) => {
    say(sessionId, 'early ');
    send({ id, result: { stopReason: 'end_turn' } });
    say(sessionId, 'late ');
    setImmediate(() => say(sessionId, 'latest'));
    return undefined;
  },
  'unknown-kinds': async (sessionId) => {
    update(sessionId, { sessionUpdate: 'from_the_future', payload: [1] });
    update(sessionId, { sessionUpdate: 'tool_call', toolCallId: 7, title: [] });
    update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'hologram' } });
    send({ method: 'session/update', params: { sessionId } });
    send({ method: '_vendor/hello', params: [] });
    say(sessionId, 'still here');
    return { stopReason: 'end_turn' };
  },
  'unknown-stop': async (sessionId) => {
    say(sessionId, 'well');
    return { stopReason: 'bored' };
  },
  stops: async (sessionId) => {
    say(sessionId, 'as far as I got');
    return { stopReason: detail };
  },
  asks: async (sessionId, params) => {
    say(sessionId, `chose ${await askPermission(sessionId, params._ask)}`);
    return { stopReason: 'end_turn' };
  },
  /** Offers nothing that holds once. */
  'asks-always': async (sessionId) => {
    const always = options.filter((option) => option.kind.endsWith('_always'));
    say(sessionId, `chose ${await askPermission(sessionId, { options: always })}`);
    return { stopReason: 'end_turn' };
  },
  'asks-twice': async (sessionId) => {
    const first = askPermission(sessionId);
    await new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    const second = await askPermission(sessionId);
    writeFileSync(detail, `${await first} ${second}`);
    return { stopReason: 'cancelled' };
  },
  'asks-and-withdraws': async (sessionId) => {
    const answer = askPermission(sessionId);
    send({ method: '$/cancel_request', params: { requestId: lastId } });
    say(sessionId, `chose ${await answer}`);
    return { stopReason: 'end_turn' };
  },
  /** A hundred questions at once. */
  'asks-much': async (sessionId) => {
    let open = 100;
    const ask = async (): Promise<void> => {
      const choice = await askPermission(sessionId);
      open -= 1;
      if (choice === 'cancelled' && open === 16) say(sessionId, 'sixteen are left');
    };
    await Promise.all(Array.from({ length: 100 }, ask));
    return { stopReason: 'end_turn' };
  },
  'wants-files': async (sessionId) => {
    const calls = ['fs/read_text_file', 'fs/write_text_file', 'terminal/create', 'elicitation/create', '_own/method'];
    const codes = await Promise.all(calls.map(async (method) => (await request(method, { sessionId, path: '/etc/passwd' })).error?.code));
    say(sessionId, codes.join(' '));
    return { stopReason: 'end_turn' };
  },
  floods: async (sessionId) => {
    for (let sent = 0; sent < 100 * 1024 * 1024; sent += flood.length) {
      say(sessionId, flood);
      if (process.stdout.writableLength > 1024 * 1024) await new Promise((resolve) => process.stdout.once('drain', resolve));
    }
    return { stopReason: 'end_turn' };
  },
  /** Requests without end, whose answers it does not read. */
  'floods-requests': async (sessionId) => {
    process.stdin.pause();
    for (let sent = 0; sent < 200_000; sent += 1) {
      lastId += 1;
      send({ id: lastId, method: 'fs/read_text_file', params: { sessionId, path: '/x' } });
      if (process.stdout.writableLength > 1024 * 1024) await new Promise((resolve) => process.stdout.once('drain', resolve));
    }
    return { stopReason: 'end_turn' };
  },
  'long-text': async (sessionId) => {
    say(sessionId, 'first words ');
    for (let sent = 0; sent < 3 * 1024 * 1024; sent += flood.length) say(sessionId, flood);
    say(sessionId, ' last words');
    return { stopReason: 'end_turn' };
  },
  'huge-line': async () => {
    for (let sent = 0; sent <= 33 * 1024 * 1024; sent += flood.length) process.stdout.write(flood);
    return undefined;
  },
  'wrong-session': async (sessionId) => {
    say('someone-else', 'stolen words');
    const choice = await askPermission('someone-else');
    say(sessionId, `own words, ${choice}`);
    return { stopReason: 'end_turn' };
  },
  'closes-stdout': async (sessionId) => {
    say(sessionId, 'bye');
    setInterval(() => undefined, 1000);
    process.stdout.end();
    return undefined;
  },
  'closes-stdin': async (sessionId) => {
    say(sessionId, 'deaf now');
    process.stdin.destroy();
    setInterval(() => undefined, 1000);
    return { stopReason: 'end_turn' };
  },
  'answers-twice': async (sessionId, _params, id) => {
    say(sessionId, 'once');
    send({ id, result: { stopReason: 'end_turn' } });
    send({ id, result: { stopReason: 'refusal' } });
    send({ id: 4711, error: { code: -1, message: 'nobody asked' } });
    return undefined;
  },
  daemon: async (sessionId) => {
    const daemon = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' });
    const sibling = spawn('sleep', ['300'], { stdio: 'ignore' });
    daemon.unref();
    sibling.unref();
    say(sessionId, `${daemon.pid} ${sibling.pid}`);
    return { stopReason: 'end_turn' };
  },
  works: async (sessionId) => {
    update(sessionId, { sessionUpdate: 'plan', entries: [{ content: 'look', priority: 'high', status: 'in_progress' }, { content: 5 }] });
    update(sessionId, { sessionUpdate: 'tool_call', toolCallId: 't1', title: 'Read\nfile', kind: 'read', status: 'pending' });
    update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'in_progress', content: [] });
    update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: 't1', content: [] });
    update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed' });
    say(sessionId, 'first message', { messageId: 'm1' });
    say(sessionId, 'second ', { messageId: 'm2' });
    say(sessionId, 'message', { messageId: 'm2' });
    update(sessionId, {
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'image', mimeType: 'image/png', data: Buffer.from('no real picture').toString('base64') },
    });
    update(sessionId, { sessionUpdate: 'usage_update', used: 100, size: 1000, cost: { amount: 0.25, currency: 'USD' } });
    const usage = { totalTokens: 18, inputTokens: 10, outputTokens: 5, cachedReadTokens: 2, thoughtTokens: 1 };
    return { stopReason: 'end_turn', usage };
  },
  'takes-all': async (sessionId) => {
    say(sessionId, JSON.stringify(lastMeta));
    const usage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, reasoningTokens: 4, steps: 1, costUsd: 0.5 };
    return { stopReason: 'end_turn', _meta: { 'dsh-acp': { usage, structured: { answer: 42 } } } };
  },
  'takes-depth': async (sessionId) => {
    say(sessionId, JSON.stringify(lastMeta));
    return { stopReason: 'end_turn' };
  },
  environment: async (sessionId) => {
    say(sessionId, JSON.stringify(process.env));
    return { stopReason: 'end_turn' };
  },
  /** Who it is, where it is, and what its session is. */
  whoami: async (sessionId) => {
    say(sessionId, JSON.stringify({ pid: process.pid, place: process.cwd(), cwd: lastCwd, sessionId }));
    return { stopReason: 'end_turn' };
  },
  closes: async (sessionId) => {
    say(sessionId, JSON.stringify({ pid: process.pid, closed }));
    return { stopReason: 'end_turn' };
  },
  /** See `session/new`. */
  'speaks-later': async (sessionId) => {
    say(sessionId, String(process.pid));
    return { stopReason: 'end_turn' };
  },
  /** Many at once, before it hears of a cancel. */
  pictures: async (sessionId) => {
    say(sessionId, 'look');
    const data = Buffer.alloc(600_000, 'x').toString('base64');
    for (let sent = 0; sent < 40; sent += 1) {
      update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'image', mimeType: 'image/png', data } });
    }
    return { stopReason: 'cancelled' };
  },
  'silent-again': async (sessionId) => {
    say(sessionId, String(process.pid));
    return { stopReason: 'end_turn' };
  },
  /** Its tool works for a while; then it says nothing any more. */
  'works-then-mute': async (sessionId) => {
    update(sessionId, { sessionUpdate: 'tool_call', toolCallId: 't1', title: 'Build', kind: 'execute', status: 'in_progress' });
    await new Promise((resolve) => setTimeout(resolve, 1500));
    update(sessionId, { sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed' });
    return undefined;
  },
  'ends-after': async (sessionId) => {
    say(sessionId, String(process.pid));
    setTimeout(() => process.exit(0), 400);
    return { stopReason: 'end_turn' };
  },
};

let lastMeta: unknown;
let lastCwd = '';
const closed: string[] = [];

async function handle(message: Message): Promise<void> {
  const { id, method, params } = message;
  if (method === undefined) {
    answers.get(id ?? -1)?.(message);
    return;
  }
  if (method === 'session/cancel') return cancelled?.();
  if (id === undefined) return;
  switch (method) {
    case 'initialize':
      if (behaviour === 'silent-initialize') return;
      if (behaviour === 'refuses-initialize') return send({ id, error: { code: -32603, message: 'not today' } });
      if (behaviour === 'prints-usage') return void process.stdout.write('Usage: agent [--help]\n', () => process.exit(2));
      return send({ id, result: initializeResult() });
    case 'session/new':
      lastMeta = params._meta;
      lastCwd = params.cwd;
      if (behaviour === 'silent-new') return;
      if (behaviour === 'silent-again' && lastSession > 0) return;
      if (detail === 'no-prices' && params._meta['dsh-acp'].budget.maxCostUsd !== undefined) {
        return send({ id, error: { code: -32602, message: 'no prices are known' } });
      }
      if (behaviour === 'no-session-id') return send({ id, result: {} });
      if (behaviour === 'needs-auth') return send({ id, error: { code: -32000, message: 'run agent login' } });
      if (behaviour === 'dies-before') {
        process.stderr.write('cannot open the database; password=hunter2hunter2\n');
        process.exit(3);
      }
      lastSession += 1;
      if (behaviour === 'speaks-later' && lastSession > 1) say(`session-${lastSession - 1}`, 'and another thing');
      update('not-told-yet', { sessionUpdate: 'available_commands_update', availableCommands: [] });
      return send({ id, result: { sessionId: behaviour === 'same-session' ? 'one' : `session-${lastSession}` } });
    case 'session/prompt':
      try {
        const result = await (prompts[behaviour] ?? prompts['good'])?.(params.sessionId, params, id);
        if (result !== undefined) send({ id, result });
      } catch (error) {
        const { code, message, data } = error as { code?: number; message: string; data?: unknown };
        send({ id, error: { code: code ?? -32603, message, data } });
      }
      return;
    case 'session/close':
      closed.push(params.sessionId);
      return send({ id, result: {} });
    default:
      return send({ id, error: { code: -32601, message: 'no such method' } });
  }
}

if (behaviour === 'deaf' || detail === 'deaf') {
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 1000);
}
if (behaviour === 'slow-leaver') setTimeout(() => undefined, 10_000);
if (detail !== '' && behaviour === 'silent-initialize') writeFileSync(detail, String(process.pid));

let rest = '';
process.stdin.setEncoding('utf8').on('data', (text: string) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) void handle(JSON.parse(line) as Message);
});
