import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { RunOutput } from '../../../../src/shared/broker-protocol.ts';
import { Broker } from '../../../../src/worker/broker/broker.ts';
import { bashTool } from '../../../../src/worker/tools/bash.ts';
import { RunFollower } from '../../../../src/worker/tools/run-follower.ts';
import type { LiveOutput } from '../../../../src/worker/tools/tool.ts';
import { testContext } from './tool-context.ts';

function makeBroker(t: Test): Broker {
  const mark = `follow-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const broker = new Broker({ mark, ambient: process.env, onGroupStarted: () => undefined, onGroupEnded: () => undefined });
  t.teardown(() => broker.shutdown());
  return broker;
}

/** A card that remembers what it was shown, and lets a test wait for it. */
class Card implements LiveOutput {
  readonly pieces: string[] = [];
  readonly paceMs: number;
  room: Promise<void> | undefined;
  #waiting: { readonly text: string; readonly seen: () => void }[] = [];

  constructor(paceMs = 5) {
    this.paceMs = paceMs;
  }

  get text(): string {
    return this.pieces.join('');
  }

  whenWritable(): Promise<void> | undefined {
    return this.room;
  }

  show(text: string): void {
    this.pieces.push(text);
    for (const { seen } of this.#waiting.filter(({ text: wanted }) => this.text.includes(wanted))) seen();
  }

  shows(text: string): Promise<void> {
    return this.text.includes(text) ? Promise.resolve() : new Promise((seen) => this.#waiting.push({ text, seen }));
  }
}

const command = (text: string) => ({ command: text, description: 'test' });

t.test('output is shown while the command runs, both streams in order, and together with the end it is the output once', async (t) => {
  const live = new Card();
  const dir = t.testdir();
  const context = testContext(dir, { broker: makeBroker(t), live });
  const running = bashTool.execute(
    command('echo one; wait_for() { while [ ! -e "$1" ]; do sleep 0.02; done; }; wait_for go; echo two >&2; wait_for on; printf "thr€e"'),
    context,
  );
  await live.shows('one\n');
  t.equal(live.text, 'one\n', 'before it has ended');
  writeFileSync(join(dir, 'go'), '');
  // Of two pipes that have something at the same moment nobody knows which was written first.
  await live.shows('two\n');
  writeFileSync(join(dir, 'on'), '');
  const outcome = await running;
  t.equal(live.text, 'one\ntwo\nthr€e');
  t.equal(outcome.meta?.['output'], live.text);
  t.match(bashTool.presentResult(command(''), outcome, { cwd: dir }), { card: 'terminal', output: live.text, exitCode: 0 });
});

t.test('a command that ends before the first look is not shown here: its result has all of it', async (t) => {
  const live = new Card(60_000);
  const outcome = await bashTool.execute(command('echo quick'), testContext(t.testdir(), { broker: makeBroker(t), live }));
  t.strictSame(live.pieces, []);
  t.equal(outcome.meta?.['output'], 'quick\n');
});

t.test('words of ours stand apart from the output', async (t) => {
  const live = new Card();
  const context = testContext(t.testdir(), { broker: makeBroker(t), live });
  const outcome = await bashTool.execute({ ...command('echo begun; sleep 60'), timeoutMs: 1000 }, context);
  t.equal(live.text, 'begun\n');
  t.match(outcome.meta, { output: 'begun\n', notes: ['[timed out after 1000 ms]'], timedOut: true });
});

t.test('a client that takes nothing holds nothing up but what it is shown: the rest is a bounded end with a mark', async (t) => {
  const live = new Card();
  let read = (): void => undefined;
  live.room = new Promise((resolve) => (read = resolve));
  const context = testContext(t.testdir(), { broker: makeBroker(t), live });
  const outcome = await bashTool.execute(command('seq 1 200000'), context);
  read();
  t.equal(live.text, '', 'nobody has looked');
  t.match(outcome.meta?.['output'], /^1\n2\n[^]*bytes left out[^]*\n200000\n$/);
});

t.test('an endless output is shown up to a limit, and then its end', async (t) => {
  const live = new Card(1);
  const asked: number[] = [];
  const piece: RunOutput = { text: 'x'.repeat(32 * 1024), over: false };
  const broker = {
    readRun: async () => {
      asked.push(1);
      return piece;
    },
  };
  const follower = new RunFollower(live, { broker, owner: 's', runId: 'r' });
  await live.shows('x'.repeat(1024 * 1024));
  // Long enough for another one to be asked several times.
  const other = new Card(1);
  const beside = new RunFollower(other, { broker: { readRun: async () => ({ text: 'y', over: false }) }, owner: 's', runId: 'q' });
  await other.shows('yyyy');
  beside.stop();
  t.equal(asked.length, 32, 'not asked again');
  await follower.finish('\n[... 5 bytes left out ...]\nend');
  t.ok(live.text.endsWith('[... 5 bytes left out ...]\nend'));
});

t.test('a lost broker ends the following, and nothing is shown behind the end', async (t) => {
  const live = new Card(1);
  let answer: (piece: RunOutput) => void = () => undefined;
  let ask = (): void => undefined;
  const asked = new Promise<void>((resolve) => (ask = resolve));
  const slow = {
    readRun: () => {
      ask();
      return new Promise<RunOutput>((resolve) => (answer = resolve));
    },
  };
  const follower = new RunFollower(live, { broker: slow, owner: 's', runId: 'r' });
  await asked;
  const finished = follower.finish('b');
  answer({ text: 'a', over: true });
  await finished;
  t.equal(live.text, 'ab', 'what was asked for comes before the rest');
  let lose = (): void => undefined;
  const lost = new Promise<void>((resolve) => (lose = resolve));
  const gone = {
    readRun: () => {
      lose();
      return Promise.reject(new Error('gone'));
    },
  };
  const widow = new RunFollower(live, { broker: gone, owner: 's', runId: 'r' });
  await lost;
  await widow.finish(undefined);
  t.equal(live.text, 'ab');
});
