import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Writable } from 'node:stream';
import t from 'tap';
import { type BrokenReason, FrameWriter } from '../../../../src/main/transport/frame-writer.ts';

interface Break {
  readonly reason: BrokenReason;
  readonly code: string | undefined;
}

function open(out: Writable, stalledReaderMs = 60_000, joinChars?: number) {
  const breaks: Break[] = [];
  const { promise: broken, resolve } = withResolvers<Break>();
  const writer = new FrameWriter(out, {
    stalledReaderMs,
    onBroken: (reason, error: (Error & { code?: string }) | undefined) => {
      breaks.push({ reason, code: error?.code });
      resolve({ reason, code: error?.code });
    },
    ...(joinChars === undefined ? {} : { joinChars }),
  });
  return { writer, breaks, broken };
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Keeps every write, and completes it only when told. */
class ManualSink extends Writable {
  readonly writes: string[] = [];
  #complete: ((error?: Error) => void) | undefined;

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(chunk: string, _encoding: string, callback: (error?: Error | null) => void): void {
    this.writes.push(chunk);
    this.#complete = callback;
    this.emit('took');
  }

  complete(error?: Error): void {
    const complete = this.#complete;
    this.#complete = undefined;
    complete?.(error);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('texts of one turn leave in one write, in order, and their callbacks run in order after it', async (t) => {
  const sink = new ManualSink();
  const { writer } = open(sink);
  const done: number[] = [];
  for (let i = 0; i < 5; i += 1) writer.write(`${i}é\n`, () => done.push(i));
  t.equal(writer.queuedBytes, 20, 'bytes, not characters');
  t.equal(sink.writes.length, 0, 'never from within write()');
  await once(sink, 'took');
  t.same(sink.writes, ['0é\n1é\n2é\n3é\n4é\n']);
  t.same(done, []);
  writer.write('later\n', () => done.push(5));
  await turn();
  t.equal(sink.writes.length, 1, 'one write under way at a time');
  t.equal(writer.queuedBytes, 26);
  const second = once(sink, 'took');
  sink.complete();
  await second;
  t.same(done, [0, 1, 2, 3, 4]);
  t.equal(sink.writes[1], 'later\n');
  const idle = writer.idle();
  sink.complete();
  await idle;
  t.same(done, [0, 1, 2, 3, 4, 5]);
  t.equal(writer.queuedBytes, 0);
});

t.test('joins stay under the cap and a longer text goes alone', async (t) => {
  const sink = new ManualSink();
  const { writer } = open(sink, 60_000, 10);
  for (const text of ['aaaa', 'bbbb', 'cccc', 'd'.repeat(30), 'e']) writer.write(text);
  const idle = writer.idle();
  sink.on('took', () => setImmediate(() => sink.complete()));
  await idle;
  t.same(sink.writes, ['aaaabbbb', 'cccc', 'd'.repeat(30), 'e']);
});

t.test('a fence writes nothing and its callback waits for what stands before it', async (t) => {
  const sink = new ManualSink();
  const { writer } = open(sink);
  const seen: string[] = [];
  writer.write('', () => seen.push('fence alone'));
  await writer.idle();
  t.same(seen, ['fence alone']);
  t.same(sink.writes, []);
  writer.write('x', () => seen.push('x'));
  writer.write('', () => seen.push('fence'));
  await once(sink, 'took');
  t.same(seen, ['fence alone']);
  sink.complete();
  await writer.idle();
  t.same(seen, ['fence alone', 'x', 'fence']);
});

t.test('a callback may write, and its text comes next', async (t) => {
  const sink = new ManualSink();
  const { writer } = open(sink);
  sink.on('took', () => setImmediate(() => sink.complete()));
  writer.write('a', () => writer.write('c'));
  writer.write('b');
  await once(sink, 'took');
  await writer.idle();
  t.same(sink.writes, ['ab', 'c']);
});

t.test('a failed write breaks the output once, and every callback still runs, in order', async (t) => {
  const sink = new ManualSink();
  const { writer, breaks } = open(sink);
  const done: string[] = [];
  writer.write('flying', () => done.push('flying'));
  await once(sink, 'took');
  writer.write('waiting', () => done.push('waiting'));
  const idle = writer.idle();
  sink.complete(Object.assign(new Error('gone'), { code: 'EPIPE' }));
  await idle;
  await turn();
  t.same(breaks, [{ reason: 'closed', code: 'EPIPE' }]);
  t.same(done, ['flying', 'waiting']);
  writer.write('after', () => done.push('after'));
  t.same(done, ['flying', 'waiting'], 'never from within write()');
  await turn();
  t.same(done, ['flying', 'waiting', 'after']);
  t.equal(writer.queuedBytes, 0);
  t.ok(writer.broken);
  await writer.idle();
});

/** A child whose stdin is a real pipe that we write to. */
function child(t: { teardown: (fn: () => unknown) => unknown }, script: string): { input: Socket; output: Socket; gone: Promise<unknown> } {
  const process_ = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'ignore'] });
  t.teardown(() => process_.kill('SIGKILL'));
  return { input: process_.stdin as unknown as Socket, output: process_.stdout as unknown as Socket, gone: once(process_, 'exit') };
}

t.test('100,000 lines through a real pipe arrive whole and in order', async (t) => {
  const { input, output } = child(t, 'process.stdin.pipe(process.stdout)');
  const { writer, breaks, broken } = open(input);
  const chunks: Buffer[] = [];
  output.on('data', (chunk: Buffer) => chunks.push(chunk));
  const expected = Array.from({ length: 100_000 }, (_, i) => `{"n":${i},"é":"漢"}`);
  let written = 0;
  for (const [index, line] of expected.entries()) {
    writer.write(`${line}\n`, () => {
      if (written === index) written += 1;
    });
    if (index % 1000 === 0) await turn();
  }
  await writer.idle();
  t.equal(written, expected.length, 'callbacks in order');
  input.end();
  // Two ends of the child, in either order.
  await Promise.all([once(output, 'end'), broken]);
  t.ok(Buffer.concat(chunks).toString() === `${expected.join('\n')}\n`, 'bytes as written');
  t.same(
    breaks.map((b) => b.reason),
    ['closed'],
    'the end of the stream is told',
  );
});

t.test('a reader that is gone breaks the output with EPIPE', async (t) => {
  const { input, gone } = child(t, 'process.exit(0)');
  const { writer, breaks, broken } = open(input);
  await gone;
  let called = false;
  writer.write('x'.repeat(1_000_000), () => {
    called = true;
  });
  t.equal((await broken).reason, 'closed');
  await writer.idle();
  t.ok(called);
  await turn();
  t.equal(breaks.length, 1);
});

t.test('a reader that stops for good is found stalled, and its writers are let go', async (t) => {
  const { input } = child(t, 'setInterval(() => {}, 1000)');
  const { writer, broken } = open(input, 200);
  const started = performance.now();
  let returned = 0;
  for (let i = 0; i < 40; i += 1) {
    writer.write('y'.repeat(50_000), () => {
      returned += 1;
    });
  }
  t.equal((await broken).reason, 'stalled');
  t.ok(performance.now() - started >= 190, 'not before the deadline');
  await writer.idle();
  t.equal(returned, 40);
});

t.test('a reader that is slow but reads is not taken as gone', async (t) => {
  const slow = `process.stdin.once('readable', function take() {
    if (process.stdin.read(40_000) === null) process.stdin.read();
    setTimeout(() => process.stdin.once('readable', take) && process.stdin.read(0), 60);
  })`;
  const { input } = child(t, slow);
  const { writer, breaks } = open(input, 1000);
  const started = performance.now();
  writer.write('z'.repeat(1_500_000));
  await writer.idle();
  t.same(breaks, []);
  t.ok(performance.now() - started > 1000, 'one write took longer than the deadline');
});

t.test('an idle writer is never stalled', async (t) => {
  const sink = new ManualSink();
  const { writer, breaks } = open(sink, 20);
  writer.write('a');
  await once(sink, 'took');
  sink.complete();
  await writer.idle();
  await new Promise((resolve) => setTimeout(resolve, 80));
  t.same(breaks, []);
});
