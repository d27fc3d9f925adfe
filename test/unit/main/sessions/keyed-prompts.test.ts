/**
 * Any interleaving of prompts with the same keys, cancels, parks and reopenings: a key has at most one turn, and every
 * request exactly one answer. The whole way but the pool: main's session, real ports, a hosted agent, a log on the disk.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t from 'tap';
import { Session } from '../../../../src/main/sessions/session.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import { logVersion } from '../../../../src/shared/events.ts';
import { createSessionFile } from '../../../../src/shared/log/session-paths.ts';
import { readEvents } from '../../../support/read-events.ts';
import { LocalServer } from '../../../support/local-server.ts';
import { testSeed } from '../../../support/test-seed.ts';

type Action =
  | { readonly do: 'send'; readonly key: string; readonly word: string }
  | { readonly do: 'leave'; readonly which: number }
  | { readonly do: 'cancel' | 'park' | 'reopen' | 'settle' }
  /** Turns of the event loop. */
  | { readonly do: 'breathe'; readonly turns: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      key: fc.constantFrom('a', 'b', 'c'),
      word: fc.constantFrom('lemon', 'lemon', 'lemon', 'lemon', 'lemon', 'plum'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'reopen' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('park' as const, 'settle' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('breathe' as const), turns: fc.integer({ min: 1, max: 60 }) }) },
);

interface Request {
  readonly key: string;
  readonly payload: string;
  readonly leave: AbortController;
  readonly answers: string[];
  readonly settled: Promise<void>;
}

/** What has come about in all runs together. */
const seen = new Set<string>();

/** One key stands for slow turns. */
const textOf = (key: string, word: string): string => (key === 'b' ? `wait 40\nsay ${word}` : `say ${word}`);

async function play(actions: readonly Action[]): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'dsh-acp-keys-'));
  let server = new LocalServer(dir);
  const id = '00000000-0000-7000-8000-000000000001';
  const agent = { name: 'test', version: '0' };
  const paths = createSessionFile(dir, { type: 'session', version: logVersion, id, createdAt: new Date().toISOString(), cwd: dir, agent });
  const open = (): Session =>
    new Session({ id, cwd: dir, paths, client: { terminalOutput: false }, profile: 'automation', options: {} }, server.parts);
  let session = open();
  const requests: Request[] = [];

  const send = (key: string, payload: string): void => {
    const leave = new AbortController();
    const answers: string[] = [];
    let answer: ReturnType<Session['prompt']>;
    try {
      answer = session.prompt([{ type: 'text', text: payload }], { key: { id: key, payload } }, leave.signal);
    } catch (error) {
      answer = Promise.reject(error);
    }
    const settled = answer.then(
      ({ stopReason, text, stored }) => {
        if (stored === true) seen.add(`stored ${stopReason}`);
        answers.push(`${stopReason} ${text ?? ''}`);
      },
      (error: unknown) => {
        answers.push(error instanceof ServerError ? error.code : String(error));
        seen.add(String(answers.at(-1)));
      },
    );
    requests.push({ key, payload, leave, answers, settled });
  };

  try {
    for (const one of actions) {
      if (one.do === 'send') send(one.key, textOf(one.key, one.word));
      else if (one.do === 'leave') requests[one.which % Math.max(1, requests.length)]?.leave.abort();
      else if (one.do === 'cancel') session.cancel();
      else if (one.do === 'park') await session.park();
      else if (one.do === 'settle') await Promise.all(requests.map((request) => request.settled));
      else if (one.do === 'breathe') {
        for (let turn = 0; turn < one.turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      } else {
        await session.close();
        server.close();
        server = new LocalServer(dir);
        session = open();
        await session.resume();
      }
    }
    await Promise.all(requests.map((request) => request.settled));
    await session.close();
    const events = await readEvents(paths.log);
    const ran = new Map<string, string>();
    for (const { type, data } of events) {
      if (type !== 'turn/start' || data.key === undefined) continue;
      if (ran.has(data.key)) throw new Error(`the key ${data.key} was run twice`);
      ran.set(data.key, data.payload ?? '');
    }
    for (const { key, payload, answers } of requests) {
      const [answer = ''] = answers;
      if (answers.length !== 1) throw new Error(`${answers.length} answers to one request`);
      const word = payload.includes('lemon') ? 'lemon' : 'plum';
      const isRight =
        answer.startsWith('cancelled') ||
        (answer.startsWith('end_turn') && ran.get(key) === payload && answer.includes(word)) ||
        (answer === 'KEY_CONFLICT' && requests.some((other) => other.key === key && other.payload !== payload));
      if (!isRight) throw new Error(`${answer} for ${key} with ${payload}; it ran with ${ran.get(key)}`);
    }
  } finally {
    server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

t.test('a key has at most one turn and a request exactly one answer, whatever is sent, left, cancelled, parked or reopened', async (t) => {
  t.comment(`TEST_SEED=${testSeed}`);
  await fc.assert(fc.asyncProperty(fc.array(action, { minLength: 3, maxLength: 25 }), play), {
    seed: testSeed,
    numRuns: 40,
    timeout: 15_000,
  });
  t.comment([...seen].join(', '));
  t.ok(seen.has('KEY_CONFLICT') && (seen.has('stored end_turn') || seen.has('stored cancelled')), 'what it is about has come about');
});
