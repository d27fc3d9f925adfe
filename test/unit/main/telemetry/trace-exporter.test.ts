/** Traces against a real collector on loopback. */
import t, { type Test } from 'tap';
import { TraceExporter } from '../../../../src/main/telemetry/trace-exporter.ts';
import type { TurnTrace } from '../../../../src/shared/turn-trace.ts';
import { type CollectorMood, TraceCollector } from '../../../support/trace-collector.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const callerId = 'b7ad6b7169203331';

function turn(traceparent?: string): TurnTrace {
  return {
    sessionId: 's1',
    ...(traceparent === undefined ? {} : { traceparent }),
    spans: [
      { name: 'invoke_agent', operation: 'invoke_agent', startMs: 1000, endMs: 1400, attributes: { 'dsh_acp.turn': 1 } },
      { name: 'chat m', operation: 'chat', startMs: 1010, endMs: 1100, parent: 0, attributes: { finish: ['stop'] } },
      { name: 'execute_tool bash', operation: 'execute_tool', startMs: 1100, endMs: 1200, parent: 0, attributes: {}, error: 'TIMEOUT' },
    ],
  };
}

async function rig(t: Test, mood: CollectorMood = 'take', path = '') {
  const collector = await TraceCollector.start(mood);
  t.teardown(() => collector.close());
  const failures: string[] = [];
  const exporter = new TraceExporter({
    endpoint: `${collector.endpoint}${path}`,
    agentName: 'an agent',
    version: '1.2.3',
    instance: 'this one',
    onFirstFailure: (reason) => failures.push(reason),
  });
  return { collector, exporter, failures };
}

t.test('a turn becomes a tree below the span of its caller', async (t) => {
  const { collector, exporter } = await rig(t, 'take', '/collect/');
  exporter.take(turn(`00-${traceId}-${callerId}-01`));
  await exporter.stop();
  t.match(collector.requests, [{ path: '/collect/v1/traces', headers: { 'content-type': 'application/json' } }]);
  const [root, chat, tool] = collector.spans;
  t.match(root, { name: 'invoke_agent', traceId, parentSpanId: callerId, kind: 1, startMs: 1000, endMs: 1400 });
  t.match(root?.attributes, { 'dsh_acp.turn': 1, 'gen_ai.agent.name': 'an agent' });
  t.match(chat, {
    name: 'chat m',
    traceId,
    parentSpanId: root?.spanId,
    kind: 3,
    startMs: 1010,
    endMs: 1100,
    attributes: { finish: ['stop'] },
  });
  t.match(tool, { name: 'execute_tool bash', parentSpanId: root?.spanId, status: { code: 2, message: 'TIMEOUT' } });
  t.equal(new Set(collector.spans.map(({ spanId }) => spanId)).size, 3);
  t.same(root?.resource, { 'service.name': 'dsh-acp', 'service.version': '1.2.3', 'service.instance.id': 'this one' });
  t.same(exporter.counts, { exported: 3, failed: 0 });
});

t.test('without a caller, or with one that cannot be read, a turn is a trace of its own', async (t) => {
  const { collector, exporter } = await rig(t);
  const bad = ['', 'hello', `00-${'0'.repeat(32)}-${callerId}-01`, `00-${traceId}-${'0'.repeat(16)}-01`, `ff-${traceId}-${callerId}-01`];
  for (const traceparent of [undefined, ...bad]) exporter.take(turn(traceparent));
  await exporter.stop();
  const roots = collector.spans.filter(({ name }) => name === 'invoke_agent');
  t.equal(roots.length, bad.length + 1);
  t.ok(roots.every(({ parentSpanId }) => parentSpanId === undefined));
  t.equal(new Set(roots.map((root) => root.traceId)).size, roots.length);
});

t.test('a caller that does not sample its trace gets no spans', async (t) => {
  const { collector, exporter } = await rig(t);
  exporter.take(turn(`00-${traceId}-${callerId}-00`));
  await exporter.stop();
  t.same(collector.spans, []);
});

t.test('a collector that takes nothing is told of once', async (t) => {
  const { collector, exporter, failures } = await rig(t, 'refuse');
  for (let count = 0; count < 200; count += 1) exporter.take(turn());
  await exporter.stop();
  t.ok(collector.requests.length >= 2, `${collector.requests.length} batches`);
  t.equal(failures.length, 1);
  t.same(exporter.counts, { exported: 0, failed: 600 });
});
