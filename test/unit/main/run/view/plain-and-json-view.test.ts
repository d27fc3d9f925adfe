/**
 * What a run says where there is no terminal: lines for people, and lines for programs.
 */
import { Writable } from 'node:stream';
import t from 'tap';
import type { RunEvent } from '../../../../../src/main/run/run-event.ts';
import { JsonView, trimResult } from '../../../../../src/main/run/view/json-view.ts';
import { PlainView } from '../../../../../src/main/run/view/plain-view.ts';
import { sampleResult, sampleStart } from '../../../../support/run-samples.ts';

class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

const start: RunEvent = { type: 'run/start', time: sampleStart, total: 3, done: 2, concurrency: 2, agent: 'agent' };
const failed = sampleResult({
  key: 'b\u001b[31m\n[3/3] forged  passed',
  status: 'failed',
  check: { exitCode: 1, signal: null, timedOut: false, output: 'one\ntwo tests failed\n' },
});

t.test('each end and each retry is one line; progress is said every half minute', async (t) => {
  const sink = new Sink();
  let now = sampleStart;
  const view = new PlainView(sink, () => now);
  t.teardown(() => view.finish());
  view.onEvent(start);
  view.onEvent({ type: 'job/state', time: now, key: 'a', state: 'running' });
  view.onEvent({ type: 'job/retry', time: now, key: 'a', tries: 2, delayMs: 1500, reason: 'busy: 429' });
  view.onEvent({ type: 'job/state', time: now, key: 'a', state: 'running' });
  now += 29_000;
  view.tick();
  t.notMatch(sink.text, /\[progress\]/);
  view.onEvent({ type: 'job/end', time: now, result: sampleResult({ key: 'a', tries: 2 }) });
  view.onEvent({ type: 'job/end', time: now, result: failed });
  now += 1000;
  view.tick();
  view.tick();
  view.onEvent({ type: 'run/draining', time: now, why: 'signal' });
  const lines = sink.text.split('\n');
  t.same(lines, [
    '[start] 3 attempts, 2 done before, 2 at once, agent agent',
    '[retry] a  try 2 in 1.50 s  busy: 429',
    '[1/3] a  passed  12.3 s  1.70k tokens  $0.0123  2 tries',
    '[2/3] b‹ESC›[31m [3/3] forged passed  failed  12.3 s  1.70k tokens  $0.0123  check: exit 1: two tests failed',
    '[progress] 2 of 3 after 30s  passed 1  failed 1  at work 0  0 tok/s  in 3.00k  out 400  $0.0246  ETA ≈ 12s',
    '[draining] no new attempts are started: signal',
    '',
  ]);
});

t.test('every event is one JSON line, in order and as it is', async (t) => {
  const sink = new Sink();
  const view = new JsonView(sink);
  const events: RunEvent[] = [
    start,
    { type: 'job/state', time: 1, key: 'a', state: 'running' },
    { type: 'job/progress', time: 2, key: 'a', chars: 12 },
    { type: 'job/end', time: 3, result: failed },
  ];
  for (const event of events) view.onEvent(event);
  const lines = sink.text.split('\n');
  t.equal(lines.pop(), '');
  t.same(
    lines.map((line) => JSON.parse(line)),
    events,
  );
});

t.test('a long result is cut in JSON events, and says where', async (t) => {
  const long = 'x'.repeat(5000);
  const command = { exitCode: 0, signal: null, timedOut: false, output: `${long}end` };
  const result = sampleResult({ text: long, patch: long, check: command, setup: command, structured: [long], labels: { long } });
  const trimmed = trimResult(result);
  t.same(trimmed.trimmed, ['text', 'labels', 'patch', 'structured', 'check.output', 'setup.output']);
  t.ok(JSON.stringify(trimmed).length < 16_000);
  t.equal(trimmed.patch, undefined);
  t.match(trimmed.check?.output, /xend$/, 'the end of an output says most');
  t.equal(trimmed.status, 'passed');
  t.notHas(trimResult(sampleResult({ patch: 'small' })), { trimmed: [] });
  t.equal(trimResult(sampleResult({ patch: 'small' })).patch, 'small');
});

t.test('a reader that goes away ends the lines and throws nothing', async (t) => {
  const sink = new Sink();
  const view = new JsonView(sink);
  sink.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  await new Promise((resolve) => sink.once('close', resolve));
  view.onEvent(start);
  t.equal(sink.text, '');
});
