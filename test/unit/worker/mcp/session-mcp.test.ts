import t from 'tap';
import type { EventInput } from '../../../../src/shared/events.ts';
import type { McpApi, McpNews, McpServerStatus } from '../../../../src/shared/mcp-protocol.ts';
import type { LateTool } from '../../../../src/worker/agent/session-tools.ts';
import { SessionMcp } from '../../../../src/worker/mcp/session-mcp.ts';

const info = (name: string) => ({ name, description: '', parameters: { type: 'object' }, hints: { readOnly: true }, print: `p-${name}` });
const status = (state: McpServerStatus['state'], more: Partial<McpServerStatus> = {}): McpServerStatus => {
  return { name: 'one', state, tools: [], leftOut: [], ...more };
};
const spec = { type: 'stdio', name: 'one', command: '/bin/x', args: [], env: {} } as const;

function rig(firstWaitMs = 60_000, isBack = false) {
  const events: EventInput[] = [];
  const told: EventInput[] = [];
  const tools: (readonly LateTool[])[] = [];
  const faults: unknown[] = [];
  const asked: number[] = [];
  const waiting: ((news: McpNews | Error) => void)[] = [];
  const api = {
    openMcp: async () => undefined,
    awaitMcp: (_owner: string, seq: number) =>
      new Promise<McpNews>((resolve, reject) => {
        asked.push(seq);
        waiting.push((news) => (news instanceof Error ? reject(news) : resolve(news)));
      }),
  } as unknown as McpApi;
  const mcp = new SessionMcp({
    api,
    request: { owner: 's', servers: [spec], directories: ['/'], times: { connectMs: 1, callMs: 1, idleMs: 1 }, spillDir: '/' },
    firstWaitMs,
    record: (event) => events.push(event),
    tell: (event) => told.push(event),
    isBack,
    setTools: (given) => tools.push(given),
    onFault: (error) => faults.push(error),
  });
  const breathe = () => new Promise((resolve) => setImmediate(resolve));
  const tell = async (news: McpNews | Error): Promise<void> => {
    await breathe();
    waiting.shift()?.(news);
    await breathe();
  };
  return { mcp, events, told, tools, faults, asked, tell };
}

t.test('what becomes of the servers is logged once, and the tools follow', async (t) => {
  const { mcp, events, tools, asked, tell } = rig();
  mcp.observe({ type: 'mcp/status', data: { name: 'one', state: 'failed', error: 'it is not there' } });
  mcp.start();
  await tell({ seq: 1, servers: [status('connecting')] });
  await tell({ seq: 2, servers: [status('failed', { error: 'it is not there' })] });
  t.same(events, [], 'the log says so already');
  await tell({ seq: 3, servers: [status('connected', { tools: [info('a'), info('b')], leftOut: [{ tool: 'c', why: 'bad' }] })] });
  const connected = {
    name: 'one',
    state: 'connected' as const,
    tools: [
      { name: 'mcp__one__a', tool: 'a', kind: 'other' as const },
      { name: 'mcp__one__b', tool: 'b', kind: 'other' as const },
    ],
    leftOut: [{ tool: 'c', why: 'bad' }],
  };
  t.same(events, [{ type: 'mcp/status', data: connected }]);
  const [kept] = tools.at(-1) ?? [];
  await tell({ seq: 4, servers: [status('ended', { tools: [info('a'), info('b')], error: 'it crashed' })] });
  t.match(events[1], { data: { state: 'ended', error: 'it crashed', tools: undefined } });
  t.equal(tools.at(-1)?.length, 2, 'a call of them starts it again');
  t.equal(tools.at(-1)?.[0], kept, 'and they are what they were');
  await tell({ seq: 5, servers: [], closed: true });
  t.same(asked, [0, 1, 2, 3, 4], 'nothing is asked after the end');
});

t.test('the first turn waits for servers that are being connected to, but not for long, and only once', async (t) => {
  const never = new AbortController().signal;
  const first = rig();
  first.mcp.start();
  const settled = first.mcp.settling(never);
  await first.tell({ seq: 1, servers: [status('connecting')] });
  await first.tell({ seq: 2, servers: [status('failed')] });
  await settled;
  t.equal(first.mcp.settling(never), undefined);

  const late = rig(20);
  late.mcp.start();
  await late.mcp.settling(never);
  t.equal(late.mcp.settling(never), undefined, 'later turns go on without');

  const cancelled = rig();
  const stop = new AbortController();
  const waiting = cancelled.mcp.settling(stop.signal);
  stop.abort();
  await waiting;

  const left = rig();
  const leaving = left.mcp.settling(never);
  left.mcp.stop();
  await leaving;
});

t.test('a broker that is lost ends the wait, and is told of unless the session is leaving', async (t) => {
  const lost = rig();
  lost.mcp.start();
  const settled = lost.mcp.settling(new AbortController().signal);
  await lost.tell(new Error('gone'));
  await settled;
  t.equal(lost.faults.length, 1);
  const leaving = rig();
  leaving.mcp.start();
  leaving.mcp.stop();
  await leaving.tell(new Error('gone'));
  t.same(leaving.faults, []);
});

t.test('a person who opens a session is told once of each server that is as its log left it; one that comes back is not', async (t) => {
  const failed = { type: 'mcp/status', data: { name: 'one', state: 'failed', error: 'it is not there' } } as const;
  const news = { servers: [status('failed', { error: 'it is not there' })] };
  const opened = rig();
  opened.mcp.observe(failed);
  opened.mcp.start();
  for (const seq of [1, 2, 3]) await opened.tell({ seq, ...news });
  t.same(opened.told, [failed]);
  t.same(opened.events, [], 'the log has it');
  await opened.tell({ seq: 4, servers: [status('connected')] });
  await opened.tell({ seq: 5, ...news });
  t.same(opened.events.at(-1), failed, 'what is new is in the log, and shown with that');
  t.equal(opened.told.length, 1);

  const back = rig(60_000, true);
  back.mcp.observe(failed);
  back.mcp.start();
  await back.tell({ seq: 1, ...news });
  t.same([back.told, back.events], [[], []]);
});
