/** The parts of a session that decide without a thread: prompt, crash counter, admission, cancel ladder, turn watch, directory. */
import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { array as arrayOf, assert as assertProperty, asyncProperty, constantFrom } from 'fast-check';
import t from 'tap';
import { Admission } from '../../../../src/main/sessions/admission.ts';
import { cancelRunningTurn } from '../../../../src/main/sessions/cancel-ladder.ts';
import { CrashCounter } from '../../../../src/main/sessions/crash-counter.ts';
import { PendingPrompt, type PromptResult } from '../../../../src/main/sessions/pending-prompt.ts';
import { TurnWatch } from '../../../../src/main/sessions/turn-watch.ts';
import { canonicalDirectory } from '../../../../src/main/sessions/working-directory.ts';
import type { AttachedSession } from '../../../../src/main/threads/attached-session.ts';
import type { SessionThreads } from '../../../../src/main/threads/session-threads.ts';
import type { ThreadLane } from '../../../../src/main/threads/thread-lane.ts';
import type { Watchdog } from '../../../../src/main/threads/watchdog.ts';
import type { ServerConfig } from '../../../../src/shared/config.ts';
import { ServerError } from '../../../../src/shared/errors.ts';

const usage = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, reasoningTokens: 0, steps: 1, toolCalls: 0, elapsedMs: 3 };
const ended: PromptResult = { ok: true, stopReason: 'end_turn', usage };
const text = [{ type: 'text', text: 'hi' }] as const;

t.test('a prompt settles once: whatever comes first, in any order', async (t) => {
  const act = constantFrom('settle', 'cancel', 'fail');
  await assertProperty(
    asyncProperty(arrayOf(act, { minLength: 1, maxLength: 6 }), async (acts) => {
      const prompt = new PendingPrompt(text, {});
      const said = acts.map((one) => {
        if (one === 'settle') return prompt.settle(ended);
        return one === 'cancel' ? prompt.settleCancelled() : prompt.fail(new ServerError('THREAD_LOST', 'gone'));
      });
      t.same(
        said,
        acts.map((_, index) => index === 0),
      );
      const answer = await prompt.answer.then(
        (result) => result.stopReason,
        (error: ServerError) => error.code,
      );
      return answer === { settle: 'end_turn', cancel: 'cancelled', fail: 'THREAD_LOST' }[acts[0] ?? 'fail'];
    }),
    { numRuns: 60 },
  );
});

t.test('a failed prompt that nobody has asked yet is no unhandled rejection', async (t) => {
  const prompt = new PendingPrompt(text, {});
  prompt.fail(new ServerError('INTERNAL', 'x'));
  await delay(5);
  await t.rejects(prompt.answer, { code: 'INTERNAL' });
});

t.test('three crashes within a minute are too many, and are forgotten after it', async (t) => {
  let now = 0;
  const crashes = new CrashCounter(() => now);
  const at = (time: number): boolean => {
    now = time;
    crashes.add();
    return crashes.tooMany;
  };
  t.same([at(0), at(30_000), at(59_999)], [false, false, true]);
  now = 60_001;
  t.notOk(crashes.tooMany, 'the first is older than a minute');
  t.ok(at(60_002), 'three again');
  now = 200_000;
  t.notOk(crashes.tooMany);
  t.notOk(at(200_001));
});

t.test('admission: so many at once, in order; more than may wait are refused; a failed turn frees its slot', async (t) => {
  const admission = new Admission(2, 3);
  const order: number[] = [];
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const run = (number: number) => async (): Promise<number> => {
    order.push(number);
    await gate;
    if (number === 0) throw new Error('turn 0 fails');
    return number;
  };
  const turns = [0, 1, 2, 3, 4].map((number) => admission.admit(run(number)));
  t.same(order, [0, 1]);
  t.same([admission.running, admission.waiting], [2, 3]);
  await t.rejects(admission.admit(run(5)), { code: 'OVERLOADED', data: { waiting: 3 } });
  open();
  t.same(
    (await Promise.allSettled(turns)).map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'],
  );
  t.same(order, [0, 1, 2, 3, 4]);
  t.same([admission.running, admission.waiting], [0, 0]);
});

function ladderRig(options: { beats: boolean; ends?: boolean; others?: number; sharedMs?: number }) {
  let beat = 0;
  const log: string[] = [];
  const prompt = new PendingPrompt(text, {});
  prompt.begin(4);
  prompt.cancelRequested = true;
  const lane = {
    threadId: 9,
    get heartbeat() {
      if (options.beats) beat += 1;
      return beat;
    },
  };
  const attached = {
    lane,
    departed: undefined,
    call: async (use: (api: { cancel: (id: number) => Promise<void> }) => Promise<void>) =>
      await use({
        cancel: async (id) => {
          log.push(`cancel ${id}`);
          if (options.ends === true) prompt.settle(ended);
        },
      }),
  } as unknown as AttachedSession;
  const threads = {
    terminate: async (id: number) => {
      log.push(`terminate ${id}`);
    },
  } as unknown as SessionThreads;
  const config = { cancelGraceMs: 30 } as ServerConfig;
  const turns = new TurnWatch({ watch: () => undefined, unwatch: () => undefined } as unknown as Watchdog);
  for (let running = 0; running <= (options.others ?? 0); running += 1) turns.started(attached.lane);
  const run = () => cancelRunningTurn(prompt, attached, { config, threads, turns }, { aloneMs: 10, sharedMs: options.sharedMs ?? 40 });
  return { prompt, log, run, otherEnds: () => turns.ended(attached.lane) };
}

t.test('cancel ladder: a turn that ends by itself keeps its reason, and its thread stays', async (t) => {
  const { prompt, log, run } = ladderRig({ beats: true, ends: true });
  await run();
  t.same(log, ['cancel 4']);
  t.equal((await prompt.answer).stopReason, 'end_turn');
});

t.test('cancel ladder: a thread whose heart stands still is ended after the grace', async (t) => {
  const { prompt, log, run } = ladderRig({ beats: false });
  const start = performance.now();
  await run();
  t.ok(performance.now() - start >= 25);
  t.same(log, ['cancel 4', 'terminate 9']);
  t.equal((await prompt.answer).stopReason, 'cancelled');
});

t.test('cancel ladder: a thread that is alive is answered for at the grace, and not ended then', async (t) => {
  const { prompt, log, run } = ladderRig({ beats: true });
  const done = run();
  t.equal((await prompt.answer).stopReason, 'cancelled');
  t.same(log, ['cancel 4']);
  prompt.unwound = true;
  // Its timer for the late end holds nothing up; the promise need not be awaited.
  void done;
});

t.test('cancel ladder: a thread with turns of others is left to the watchdog, and ended for a turn only after a longer time', async (t) => {
  // Nothing of the ladder keeps a process alive.
  const alive = setInterval(() => undefined, 1000);
  t.teardown(() => clearInterval(alive));
  const shared = ladderRig({ beats: false, others: 1 });
  const ended = shared.run();
  t.equal((await shared.prompt.answer).stopReason, 'cancelled');
  t.same(shared.log, ['cancel 4'], 'its heart may have missed some beats');
  await ended;
  t.same(shared.log, ['cancel 4', 'terminate 9'], 'in the end');
  const unwinds = ladderRig({ beats: true, others: 1 });
  const over = unwinds.run();
  await unwinds.prompt.answer;
  unwinds.prompt.unwound = true;
  await over;
  t.same(unwinds.log, ['cancel 4']);
  // It would be far longer than this test has.
  const left = ladderRig({ beats: true, others: 1, sharedMs: 600_000 });
  const alone = left.run();
  await left.prompt.answer;
  left.otherEnds();
  await alone;
  t.same(left.log, ['cancel 4', 'terminate 9'], 'soon when nobody else is there');
});

t.test('turn watch: a thread is watched from its first turn to its last', async (t) => {
  const log: string[] = [];
  const watchdog = { watch: () => log.push('watch'), unwatch: () => log.push('unwatch') } as unknown as Watchdog;
  const turns = new TurnWatch(watchdog);
  const [a, b] = [{}, {}] as [ThreadLane, ThreadLane];
  turns.started(a);
  turns.started(a);
  turns.ended(a);
  t.same(log, ['watch', 'watch']);
  turns.started(b);
  turns.ended(b);
  turns.ended(a);
  t.same(log, ['watch', 'watch', 'watch', 'unwatch', 'unwatch']);
});

t.test('working directory: canonical, absolute, a directory, enterable', async (t) => {
  const dir = t.testdir({ real: { inner: {} }, file: 'x', closed: {} });
  symlinkSync(join(dir, 'real'), join(dir, 'link'));
  t.equal(await canonicalDirectory(join(dir, 'link', 'inner', '..')), join(dir, 'real'));
  for (const [path, says] of [
    ['real', /absolute/],
    ['', /absolute/],
    [`${dir}/re\0al`, /absolute/],
    [join(dir, 'missing'), /does not exist/],
    [join(dir, 'file'), /not one/],
    [join(dir, 'file', 'x'), /ENOTDIR/],
    [`/${'x'.repeat(5000)}`, /ENAMETOOLONG/],
  ] as const) {
    await t.rejects(canonicalDirectory(path), { code: 'CWD_INVALID', message: says, data: { field: 'cwd' } });
  }
  chmodSync(join(dir, 'closed'), 0o600);
  if (process.getuid?.() !== 0) await t.rejects(canonicalDirectory(join(dir, 'closed')), { code: 'CWD_INVALID' });
  chmodSync(join(dir, 'closed'), 0o700);
});
