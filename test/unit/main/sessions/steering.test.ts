/**
 * Any interleaving of prompts, steered messages, cancels and parks: each steered message has exactly one outcome, and the log
 * has its text as often as the outcome says. The whole way but the pool: main's session, real ports, a hosted agent, a log.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t from 'tap';
import { PendingPrompt } from '../../../../src/main/sessions/pending-prompt.ts';
import { Session } from '../../../../src/main/sessions/session.ts';
import { steer, type Steered, type SteeringParts } from '../../../../src/main/sessions/steering.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import { logVersion } from '../../../../src/shared/events.ts';
import { createSessionFile } from '../../../../src/shared/log/session-paths.ts';
import { readEvents } from '../../../support/read-events.ts';
import { LocalServer } from '../../../support/local-server.ts';
import { testSeed } from '../../../support/test-seed.ts';

const text = (words: string) => [{ type: 'text' as const, text: words }];
const breathe = async (turns: number): Promise<void> => {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

class Rig {
  readonly server: LocalServer;
  readonly session: Session;
  readonly log: string;
  readonly #dir = mkdtempSync(join(tmpdir(), 'dsh-acp-steer-'));

  constructor() {
    this.server = new LocalServer(this.#dir);
    const id = '00000000-0000-7000-8000-000000000001';
    const header = { type: 'session', version: logVersion, id, createdAt: new Date().toISOString(), cwd: this.#dir } as const;
    const paths = createSessionFile(this.#dir, { ...header, agent: { name: 'test', version: '0' } });
    this.log = paths.log;
    const place = { id, cwd: this.#dir, paths, client: { terminalOutput: false }, profile: 'automation' } as const;
    this.session = new Session({ ...place, options: {} }, this.server.parts);
  }

  async end(): Promise<void> {
    this.server.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

type Action =
  | { readonly do: 'prompt' | 'steer'; readonly words: string }
  | { readonly do: 'abort'; readonly which: number }
  | { readonly do: 'cancel' | 'park' }
  /** Turns of the event loop. */
  | { readonly do: 'breathe'; readonly turns: number };

const words = fc.constantFrom('say lemon', 'wait 5\nsay plum', 'say fig\nwait 1\nsay date', 'fail AUTH 9');
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('prompt' as const), words }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('steer' as const), words }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const), which: fc.nat(10) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'park' as const) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('breathe' as const), turns: fc.integer({ min: 1, max: 40 }) }) },
);

interface Sent {
  readonly messageId: string;
  readonly leave: AbortController;
  readonly outcomes: string[];
  readonly settled: Promise<void>;
}

/** What has come about in all runs together. */
const seen = new Set<string>();

/** How often the log may have the text, as a message into a turn and as a prompt. */
function mayBeSaid(outcome: string): readonly string[] {
  if (outcome === 'injected') return ['steer'];
  if (outcome === 'started end_turn' || outcome === 'AUTH_REQUIRED') return ['prompt'];
  // A turn that was cancelled may have ended before it began.
  if (outcome === 'started cancelled') return ['prompt', ''];
  return [''];
}

async function play(actions: readonly Action[]): Promise<void> {
  const rig = new Rig();
  const { session } = rig;
  const sent: Sent[] = [];
  const prompts: Promise<unknown>[] = [];
  const steerNow = (said: string): void => {
    const messageId = `m${sent.length}`;
    const leave = new AbortController();
    const outcomes: string[] = [];
    const settled = session.steer({ content: text(said), messageId }, leave.signal).then(
      (steered) => void outcomes.push(steered.outcome === 'started' ? `started ${steered.result.stopReason}` : steered.outcome),
      (error: unknown) => void outcomes.push(error instanceof ServerError ? error.code : String(error)),
    );
    sent.push({ messageId, leave, outcomes, settled });
  };
  try {
    for (const one of actions) {
      if (one.do === 'prompt') prompts.push(session.prompt(text(one.words), {}, new AbortController().signal).catch(() => undefined));
      else if (one.do === 'steer') steerNow(one.words);
      else if (one.do === 'abort') sent[one.which % Math.max(1, sent.length)]?.leave.abort();
      else if (one.do === 'cancel') session.cancel();
      else if (one.do === 'park') await session.park();
      else if (one.do === 'breathe') await breathe(one.turns);
    }
    await Promise.all([...prompts, ...sent.map((one) => one.settled)]);
    await session.close();
    const events = await readEvents(rig.log);
    const said = events.flatMap(({ type, data }) => (type === 'user/message' ? [data] : []));
    for (const { messageId, outcomes } of sent) {
      const [outcome = ''] = outcomes;
      seen.add(outcome);
      if (outcomes.length !== 1) throw new Error(`${outcomes.length} outcomes of one message`);
      const sources = said.filter((one) => one.messageId === messageId).map(({ source }) => source);
      if (!mayBeSaid(outcome).includes(sources.join())) throw new Error(`${outcome}, and the log has it as [${sources.join()}]`);
    }
    const injected = sent.filter(({ outcomes }) => outcomes[0] === 'injected').map(({ messageId }) => messageId);
    const logged = said.filter(({ source }) => source === 'steer').map(({ messageId }) => messageId);
    if (logged.join() !== injected.join()) throw new Error(`sent as ${injected.join()}, said as ${logged.join()}`);
  } finally {
    await rig.end();
  }
}

t.test('a steered message has one outcome, and is said exactly as often as that says', async (t) => {
  t.comment(`TEST_SEED=${testSeed}`);
  await fc.assert(fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 20 }), play), {
    seed: testSeed,
    numRuns: 25,
    timeout: 15_000,
  });
  t.comment([...seen].join(', '));
  for (const outcome of ['injected', 'started end_turn']) t.ok(seen.has(outcome), outcome);
});

t.test('a message with an id that the session knows is not said again, in a turn or as one', async (t) => {
  const rig = new Rig();
  t.teardown(() => rig.end());
  const { session } = rig;
  const never = new AbortController().signal;
  const say = (messageId: string): Promise<Steered> => session.steer({ content: text('say x'), messageId }, never);
  const prompt = session.prompt(text('wait 200\nsay done'), {}, never);
  t.same(await say('one'), { outcome: 'injected' });
  await t.rejects(say('one'), { code: 'INVALID_PARAMS', data: { field: 'messageId' } }, 'while it waits');
  t.match(await prompt, { stopReason: 'end_turn' });
  t.match(await say('two'), { outcome: 'started', result: { stopReason: 'end_turn' } });
  t.equal(await session.park(), true);
  for (const known of ['one', 'two']) await t.rejects(say(known), { code: 'INVALID_PARAMS' }, `${known}, read back from the log`);
  await session.close();
  const ids = (await readEvents(rig.log)).flatMap(({ type, data }) => (type === 'user/message' ? [data.messageId] : []));
  t.equal(new Set(ids).size, ids.length);
});

/** Prompts that a test moves by hand. */
function byHand(call: (ask: unknown) => unknown = () => 'injected') {
  const prompts: PendingPrompt[] = [];
  const add = (): PendingPrompt => {
    const prompt = new PendingPrompt(text('p'), {});
    prompts.push(prompt);
    return prompt;
  };
  const started: string[] = [];
  const leave = new AbortController();
  const parts: SteeringParts = {
    front: () => prompts.find((prompt) => !prompt.settled && !prompt.cancelRequested),
    attached: () => ({ call: async (ask: unknown) => call(ask) }) as never,
    start: async ({ messageId }) => {
      started.push(messageId);
      return { ok: true, stopReason: 'end_turn', usage: {} as never };
    },
  };
  return { add, started, leave, steer: (messageId = 'm') => steer({ content: text('s'), messageId }, leave.signal, parts) };
}

t.test('a message waits for the turn that is on its way to a thread, and shares its fate', async (t) => {
  const begun = byHand();
  const prompt = begun.add();
  const waiting = begun.steer();
  prompt.begin(1);
  t.same(await waiting, { outcome: 'injected' });

  const cancelled = byHand();
  const lost = cancelled.add();
  const hopeless = cancelled.steer();
  lost.cancelRequested = true;
  lost.settleCancelled();
  t.same(await hopeless, { outcome: 'refused', reason: 'cancelled' });

  const failed = byHand();
  const unbegun = failed.add();
  const orphan = failed.steer();
  unbegun.fail(new ServerError('OVERLOADED', 'full'));
  t.same(await orphan, { outcome: 'refused', reason: 'not-begun' });

  const left = byHand();
  left.add();
  const impatient = left.steer();
  left.leave.abort();
  await t.rejects(impatient, { code: 'REQUEST_CANCELLED' });
  t.same(
    [begun, cancelled, failed, left].map(({ started }) => started),
    [[], [], [], []],
  );
});

t.test('a turn that ended on the way is no refusal; a full one and a lost thread are told apart', async (t) => {
  const answers: unknown[] = ['not-running', 'injected'];
  const next = byHand(() => answers.shift());
  const [ending, following] = [next.add(), next.add()];
  ending.begin(1);
  const moved = next.steer();
  await breathe(2);
  ending.settle({ ok: true, stopReason: 'end_turn', usage: {} as never });
  following.begin(2);
  t.same(await moved, { outcome: 'injected' }, 'into the next turn');

  const last = byHand(() => 'not-running');
  const only = last.add();
  only.begin(1);
  const alone = last.steer('later');
  await breathe(2);
  only.settle({ ok: true, stopReason: 'end_turn', usage: {} as never });
  t.match(await alone, { outcome: 'started' });
  t.same(last.started, ['later']);

  const full = byHand(() => 'full');
  full.add().begin(1);
  t.same(await full.steer(), { outcome: 'refused', reason: 'full' });

  const gone = byHand(() => undefined);
  gone.add().begin(1);
  await t.rejects(gone.steer(), { code: 'THREAD_LOST', message: /same messageId/ });
});
