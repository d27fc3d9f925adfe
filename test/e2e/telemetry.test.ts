/** Metrics and traces of the built server, seen from outside. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { endServer, startServer } from '../support/started-server.ts';
import { type CollectorMood, TraceCollector } from '../support/trace-collector.ts';

t.setTimeout(60_000);

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const callerId = '00f067aa0ba902b7';

async function collectorFor(t: Test, mood: CollectorMood): Promise<TraceCollector> {
  const collector = await TraceCollector.start(mood);
  t.teardown(() => collector.close());
  return collector;
}

async function tracedServer(t: Test, collector: TraceCollector) {
  const args = ['--model', 'scripted', '--permission-mode', 'full-access', '--otlp-endpoint', collector.endpoint];
  const server = await startServer(t, { args });
  const sessionId = await server.newSession(t.testdir({}));
  return { server, sessionId };
}

t.test('a turn with two tool calls is a tree of spans below the span of its caller', async (t) => {
  const collector = await collectorFor(t, 'take');
  const { server, sessionId } = await tracedServer(t, collector);
  const answer = await server.request('session/prompt', {
    sessionId,
    prompt: [{ type: 'text', text: 'run echo my-first-words\nrun exit 3\nsay my-last-words' }],
    _meta: { traceparent: `00-${traceId}-${callerId}-01` },
  });
  t.equal(answer.result?.stopReason, 'end_turn');
  await collector.until(({ spans }) => spans.length >= 6);
  const { spans } = collector;
  const root = spans.find(({ name }) => name === 'invoke_agent');
  t.match(root, { traceId, parentSpanId: callerId, attributes: { 'gen_ai.conversation.id': sessionId, 'dsh_acp.tool_calls': 2 } });
  const below = spans.filter((span) => span !== root);
  t.same(below.map(({ name }) => name).toSorted(), [...Array(3).fill('chat scripted'), ...Array(2).fill('execute_tool bash')]);
  t.ok(below.every((span) => span.traceId === traceId && span.parentSpanId === root?.spanId));
  t.ok(below.every(({ startMs, endMs }) => root!.startMs <= startMs && startMs <= endMs && endMs <= root!.endMs));
  const calls = server.updates(sessionId).flatMap(({ sessionUpdate, toolCallId }) => (sessionUpdate === 'tool_call' ? [toolCallId] : []));
  const tools = below.filter(({ name }) => name === 'execute_tool bash');
  t.same(
    tools.map(({ attributes }) => attributes['gen_ai.tool.call.id']),
    calls,
  );
  t.match(below.find(({ kind }) => kind === 3)?.attributes, { 'gen_ai.provider.name': 'scripted', 'gen_ai.request.model': 'scripted' });
  t.notMatch(JSON.stringify(collector.requests), /my-first-words|my-last-words|exit 3/);
  t.match((await server.request('_status', {})).result.spans, { exported: Number, failed: 0 });
  await endServer(t, server);
});

t.test('the spans of the last turn are sent before the server is gone', async (t) => {
  const collector = await collectorFor(t, 'take');
  const { server, sessionId } = await tracedServer(t, collector);
  await server.prompt(sessionId, 'say so');
  await endServer(t, server);
  t.equal(collector.spans.length, 2);
});

t.test('a collector that hangs delays neither a turn nor the end', async (t) => {
  const collector = await collectorFor(t, 'hang');
  const { server, sessionId } = await tracedServer(t, collector);
  t.equal((await server.prompt(sessionId, 'say one')).result?.stopReason, 'end_turn');
  await collector.until(({ requests }) => requests.length > 0);
  t.equal((await server.prompt(sessionId, 'say two')).result?.stopReason, 'end_turn');
  const start = performance.now();
  await endServer(t, server);
  const elapsed = performance.now() - start;
  t.ok(elapsed < 5000, `gone after ${elapsed.toFixed(0)} ms; the collector alone would have taken ten seconds`);
});

t.test('a collector that takes nothing costs one line on stderr', async (t) => {
  const collector = await collectorFor(t, 'refuse');
  const { server, sessionId } = await tracedServer(t, collector);
  for (const batch of [1, 2]) {
    t.equal((await server.prompt(sessionId, 'say so')).result?.stopReason, 'end_turn');
    await collector.until(({ requests }) => requests.length >= batch);
  }
  t.same(await server.close(), { code: 0, signal: null });
  const { host } = new URL(collector.endpoint);
  t.equal(server.stderr, `dsh-acp warn: the trace collector at ${host} takes no spans: Forbidden\n`);
});

t.test('metrics are served on a free port that stderr and _status name, until the server is gone', async (t) => {
  const server = await startServer(t, { args: ['--model', 'scripted', '--metrics-port', '0', '--log-level', 'info'] });
  const sessionId = await server.newSession(t.testdir({}));
  t.equal((await server.prompt(sessionId, 'run echo counted')).result?.stopReason, 'end_turn');
  const { metrics, totals } = (await server.request('_status', {})).result;
  t.match(totals, { prompts: { end_turn: 1 }, toolCalls: 1, permissionRequests: { selected: 1 } });
  t.match(totals, { firstTokenMs: { sum: Number, count: 1 }, turnMs: { sum: Number, count: 1 } });
  const url = `http://127.0.0.1:${metrics.port}/metrics`;
  t.ok(server.stderr.includes(`metrics are served at ${url}\n`), server.stderr);
  const page = await (await fetch(url)).text();
  for (const line of ['dsh_acp_sessions{state="open"} 1', 'dsh_acp_tool_calls_total 1', 'dsh_acp_turn_duration_seconds_count 1']) {
    t.ok(page.includes(`\n${line}\n`), line);
  }
  t.match(page, /\ndsh_acp_update_frames_total [1-9]/);
  t.match(page, /\ndsh_acp_resident_memory_bytes [1-9]\d{7}/);
  t.same(await server.close(), { code: 0, signal: null });
  await t.rejects(fetch(url), 'nothing is left on the port');
});

t.test('a metrics port that is taken costs the metrics, not the server', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const server = await startServer(t, { args: ['--model', 'scripted', '--metrics-port', String(port)] });
  const sessionId = await server.newSession(t.testdir({}));
  t.equal((await server.prompt(sessionId, 'say so')).result?.stopReason, 'end_turn');
  t.equal((await server.request('_status', {})).result.metrics, undefined);
  t.same(await server.close(), { code: 0, signal: null });
  t.equal(server.stderr, `dsh-acp error: no metrics: port ${port} of 127.0.0.1 cannot be opened (EADDRINUSE)\n`);
});
