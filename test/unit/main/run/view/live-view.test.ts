/**
 * The live view on a terminal that tells what a person would see, with a clock of its own.
 */
import t, { type Test } from 'tap';
import { drawFrame } from '../../../../../src/main/run/view/live-frame.ts';
import { LiveView } from '../../../../../src/main/run/view/live-view.ts';
import { RunTally } from '../../../../../src/main/run/view/run-tally.ts';
import type { JobResult } from '../../../../../src/main/run/job-result.ts';
import type { RunEvent } from '../../../../../src/main/run/run-event.ts';
import { FakeTerminal } from '../../../../support/fake-terminal.ts';
import { eventsOf, outcomeOf, sampleRandom, sampleResult, sampleStart, variedResult } from '../../../../support/run-samples.ts';

interface Stage {
  readonly terminal: FakeTerminal;
  readonly view: LiveView;
  now: number;
}

function stage(t: Test, size: { columns?: number; rows?: number } = {}, color = false): Stage {
  const terminal = new FakeTerminal(size);
  const at = { now: sampleStart };
  const view = new LiveView({ stream: terminal, now: () => at.now, color });
  t.teardown(() => view.finish());
  return Object.assign(at, { terminal, view });
}

/** Plays events along their own times; the timer's ticks are played too. */
function play(stage: Stage, events: readonly RunEvent[], tickMs = 100): void {
  for (const event of events) {
    while (stage.now + tickMs <= event.time) {
      stage.now += tickMs;
      stage.view.tick();
    }
    stage.now = Math.max(stage.now, event.time);
    stage.view.onEvent(event);
  }
}

const startOf = (total: number, concurrency = 4): RunEvent => ({
  type: 'run/start',
  time: sampleStart,
  total,
  done: 0,
  concurrency,
  agent: 'dsh-acp 0.1.0',
});

t.test('the frame says what runs, what ended, what it cost and how long it will take', async (t) => {
  const it = stage(t);
  const ended = (key: string, status: 'passed' | 'failed') =>
    ({ type: 'job/end', time: sampleStart + 10_000, result: sampleResult({ key, status }) }) as const;
  play(it, [
    startOf(10, 2),
    { type: 'job/state', time: sampleStart, key: 'old', state: 'preparing' },
    { type: 'job/state', time: sampleStart + 500, key: 'old', state: 'running' },
    { type: 'job/state', time: sampleStart + 5000, key: 'new', state: 'running' },
    { type: 'job/progress', time: sampleStart + 9000, key: 'old', chars: 4000 },
    ended('a', 'passed'),
    ended('b', 'failed'),
    { type: 'job/retry', time: sampleStart + 10_000, key: 'c', tries: 2, delayMs: 500, reason: 'busy' },
  ]);
  it.now = sampleStart + 12_000;
  it.view.tick();
  const { screen } = it.terminal;
  t.match(screen, /2 of 10 {2}12s {2}ETA ≈/);
  t.match(screen, /20%/);
  t.match(screen, /passed 1 {2}failed 1/);
  t.match(screen, /waiting 6 {2}preparing 0 {2}running 2 {2}checking 0 {2}retries 1/);
  t.match(screen, /≈ \d+ tok\/s {2}in 3.00k {2}out 400 {2}\$0.0246/, 'a rate that is guessed from characters says so');
  t.match(screen, /last: b {2}failed {2}12.3 s/);
  t.match(screen, /running longest\n {6}12s {2}running {4}old\n {7}7s {2}running {4}new/);
});

t.test('ten thousand jobs are drawn ten times a second at most, and the last frame is right', async (t) => {
  const random = sampleRandom(3);
  const results = Array.from({ length: 10_000 }, (_, index) => shortened(variedResult(index, random)));
  const events = eventsOf(results, 200);
  const it = stage(t, { columns: 100, rows: 30 });
  const started = performance.now();
  // Ticks far more often than the real timer's, so that the bound is the view's own.
  play(it, events, 10);
  const seconds = (it.now - sampleStart) / 1000;
  await it.view.finish();
  t.ok(it.terminal.writes <= seconds * 10 + 5, `${it.terminal.writes} writes in ${seconds.toFixed(0)} s`);
  t.ok(it.terminal.writes > seconds, 'it was drawn all along');
  const counts = outcomeOf(results).byStatus;
  t.match(it.terminal.screen, /10,000 of 10,000/);
  t.match(it.terminal.screen, new RegExp(`passed ${counts['passed']!.toLocaleString('en-US')} `));
  t.match(it.terminal.screen, /waiting 0 {2}preparing 0 {2}running 0 {2}checking 0/);
  t.notMatch(it.terminal.screen, /running longest/);
  t.equal(it.terminal.lines.length <= 30, true, 'old frames leave nothing on the screen');
  t.comment(`${events.length} events in ${(performance.now() - started).toFixed(0)} ms`);
});

/** A minute of the terminal's time is enough. */
function shortened(result: JobResult): JobResult {
  return { ...result, times: { ...result.times, setupMs: 10, checkMs: 10, totalMs: result.times.totalMs / 30 } };
}

t.test('what turns have said is not counted again at the end of their job', async (t) => {
  const tally = new RunTally();
  for (const event of eventsOf([sampleResult({ key: 'a' }), sampleResult({ key: 'b' })], 2)) tally.apply(event);
  t.equal(tally.ended, 2);
  t.equal(tally.running.size, 0);
  t.equal(tally.usage.outputTokens, 400);
  t.equal(tally.costUsd, 0.0246);
  tally.apply({ type: 'job/end', time: sampleStart, result: sampleResult({ key: 'quiet' }) });
  t.equal(tally.usage.outputTokens, 600, 'an agent that says it only at the end is counted then');
});

t.test('no line is wider than the terminal, whatever jobs are called, also after a resize', async (t) => {
  const it = stage(t, { columns: 100 });
  play(it, [
    startOf(3),
    { type: 'job/state', time: sampleStart, key: '日本語のとても長い仕事の名前'.repeat(5), state: 'running' },
    { type: 'job/state', time: sampleStart, key: `evil\u001b[2J\u202E${'x'.repeat(200)}`, state: 'running' },
    { type: 'job/end', time: sampleStart + 100, result: sampleResult({ key: 'k'.repeat(300), status: 'error', error: 'e\n'.repeat(300) }) },
  ]);
  t.notOk(it.terminal.text.includes('\u001b[2J'), 'a name cannot clear the screen');
  for (const columns of [40, 20, 8]) {
    it.terminal.resize(columns);
    it.now += 200;
    it.view.tick();
    const frame = drawFrame(tallyOf(it), it.now, { columns, rows: 24, color: false });
    for (const line of frame) t.ok(widthOf(line) <= columns - 1, `${columns}: ${line}`);
  }
  t.match(it.terminal.screen.split('\n').at(-1), /\S/);
});

/** The same state as the view has, to draw it without a terminal. */
function tallyOf(it: Stage): RunTally {
  const tally = new RunTally();
  tally.apply(startOf(3));
  tally.apply({ type: 'job/state', time: it.now, key: '日本語のとても長い仕事の名前'.repeat(5), state: 'running' });
  return tally;
}

function widthOf(line: string): number {
  return Array.from(line).reduce((sum, char) => sum + (char.codePointAt(0)! > 0x2e80 ? 2 : 1), 0);
}

t.test('a low terminal keeps the head and drops jobs', async (t) => {
  const it = stage(t, { rows: 8 });
  play(it, [
    startOf(50, 50),
    ...Array.from({ length: 50 }, (_, index) => ({ type: 'job/state', time: sampleStart, key: `job-${index}`, state: 'running' }) as const),
  ]);
  it.now += 1000;
  it.view.tick();
  it.now += 1000;
  it.view.tick();
  const lines = it.terminal.screen.split('\n');
  t.ok(lines.length < 8, `${lines.length} lines`);
  t.match(lines[0], /0 of 50/);
  t.match(it.terminal.screen, /running longest \(\d+ more\)/);
});

t.test('the cursor is hidden while the view draws and given back at its end', async (t) => {
  const it = stage(t);
  const listeners = process.listenerCount('exit');
  it.view.onEvent(startOf(1));
  t.equal(it.terminal.cursorShown, false);
  t.equal(process.listenerCount('exit'), listeners + 1, 'an exit in between gives it back too');
  await it.view.finish();
  t.equal(it.terminal.cursorShown, true);
  t.equal(process.listenerCount('exit'), listeners);
  t.equal(it.terminal.listenerCount('resize'), 0);
});

t.test('the view ends with the run, so that what is said behind it stays whole', async (t) => {
  const it = stage(t);
  const outcome = outcomeOf([sampleResult()]);
  play(it, [
    startOf(1),
    { type: 'job/end', time: sampleStart + 50, result: sampleResult() },
    { type: 'run/end', time: sampleStart + 60, outcome },
  ]);
  t.match(it.terminal.screen, /1 of 1/, 'the last state is drawn, however soon it came');
  t.equal(it.terminal.cursorShown, true);
  it.terminal.write('said behind it\n');
  it.now += 5000;
  it.view.tick();
  await it.view.finish();
  t.match(it.terminal.screen, /1 of 1[^]*said behind it$/);
});

t.test('colours are used only where they are wanted', async (t) => {
  const coloured = stage(t, {}, true);
  const plain = stage(t, {}, false);
  const events: RunEvent[] = [startOf(2), { type: 'job/end', time: sampleStart + 500, result: sampleResult() }];
  for (const it of [coloured, plain]) {
    play(it, events);
    it.now += 200;
    it.view.tick();
  }
  t.ok(coloured.terminal.text.includes('\u001b[32m'));
  t.notOk(plain.terminal.text.includes('\u001b[32m'));
  t.equal(coloured.terminal.screen, plain.terminal.screen);
});

t.test('a terminal that goes away ends the view and not the run', async (t) => {
  const it = stage(t);
  it.view.onEvent(startOf(2));
  it.terminal.destroy(new Error('EIO'));
  await new Promise((resolve) => it.terminal.once('close', resolve));
  const { writes } = it.terminal;
  play(it, [{ type: 'job/end', time: sampleStart + 5000, result: sampleResult() }]);
  await it.view.finish();
  t.equal(it.terminal.writes, writes);
});
