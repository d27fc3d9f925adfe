/** Each complaint of the judges can be had: one bad history a complaint, and that complaint alone. */
import t from 'tap';
import type { LogEvent } from '../../src/shared/events.ts';
import { Completions } from '../../src/main/threads/completions.ts';
import { PendingPrompt } from '../../src/main/sessions/pending-prompt.ts';
import { Judge } from './judge.ts';
import { judgeEvents, judgeLog, type Known } from './judge-log.ts';
import { replace, watchSettling } from './settling.ts';

const update = (session: number, update: object): object => ({ method: 'session/update', params: { sessionId: `s${session}`, update } });
const say = (text: string, session = 0): object => update(session, { sessionUpdate: 'agent_message_chunk', content: { text } });
const think = (text: string): object => update(0, { sessionUpdate: 'agent_thought_chunk', content: { text } });
const card = (status: string, toolCallId = 'c1', title = 'work S0P1T1'): object =>
  update(0, { sessionUpdate: 'tool_call', toolCallId, status, title });
const change = (status: string, toolCallId = 'c1'): object => update(0, { sessionUpdate: 'tool_call_update', toolCallId, status });
const ask = (toolCallId = 'c1'): object => ({
  method: 'session/request_permission',
  id: 'q1',
  params: { sessionId: 's0', toolCall: { toolCallId } },
});
const end = (id: number, stopReason = 'end_turn'): object => ({ id, result: { stopReason } });

type Step = object | ((judge: Judge) => void);
const prompt =
  (request: number, script = `say S0P${request} begins`, session = 0) =>
  (judge: Judge): void =>
    judge.requested(request, 'prompt', session, { tag: `S${session}P${request}`, script });
const begun = [prompt(1), say('S0P1 begins\n')];

function complaintsOf(steps: readonly Step[]): readonly string[] {
  const judge = new Judge(true);
  judge.sessionIs('s0', 0);
  judge.sessionIs('s1', 1);
  for (const step of steps) {
    if (typeof step === 'function') step(judge);
    else judge.take(step);
  }
  judge.atRest();
  return judge.complaints;
}

const histories: readonly (readonly [complaint: string | undefined, steps: readonly Step[]])[] = [
  [undefined, [...begun, end(1), prompt(2), say('S0P2 '), say('begins\n'), end(2)]],
  [undefined, [...begun, card('pending'), ask(), (judge) => judge.answered('q1'), change('in_progress'), change('completed'), end(1)]],
  [undefined, [prompt(1), say('S0P1 beg'), think('text of the failed attempt is discarded.'), say('S0P1 begins\n'), end(1)]],
  [undefined, [...begun, (judge) => judge.cancelled(0), end(1, 'cancelled')]],
  ['the prompt 1 has no response', begun],
  ['the request 1 was answered twice', [...begun, end(1), end(1)]],
  ['an answer to 7, which was not asked', [end(7)]],
  ['the request 1 failed with INTERNAL: oh', [prompt(1), { id: 1, error: { code: 'INTERNAL', message: 'oh' } }]],
  ['the request 1 ended cancelled, and nobody asked for that', [...begun, end(1, 'cancelled')]],
  ['an update of an unknown session s9', [say('x', 9)]],
  ['session 1 shows S0P1', [...begun, say('S0P1 ', 1), end(1)]],
  ['S0P1 is shown while no request for it is open', [...begun, end(1), say('S0P1 ')]],
  [
    'S0P1 is shown behind a later prompt of its session',
    // The first is sent again with its key while it is open, and so keeps its place; the second has gone by.
    [
      (judge) => judge.requested(1, 'prompt', 0, { tag: 'S0P1' }),
      prompt(2),
      (judge) => judge.requested(3, 'prompt', 0, { tag: 'S0P1' }),
      (judge) => judge.ended(),
      say('S0P2 begins\n'),
      end(2),
      say('S0P1 '),
      end(1),
      end(3),
    ],
  ],
  ['S0P2 is shown before S0P1, which came earlier, has its response', [...begun, prompt(2), say('S0P2 begins\n'), end(1), end(2)]],
  ['S0P1 was answered end_turn, and its text is "S0P1 " and not "S0P1 S0P1 S0P1 "', [prompt(1, 'repeat 3 S0P1'), say('S0P1 '), end(1)]],
  [
    'S0P1 was answered end_turn, and its text is "ends S0P1\\nS0P1 begins\\n" and not "S0P1 begins\\nends S0P1\\n"',
    [prompt(1, 'say S0P1 begins\nsay ends S0P1'), say('ends S0P1\n'), say('S0P1 begins\n'), end(1)],
  ],
  ['the card 0/c1 is left pending', [...begun, end(1), prompt(2), card('pending', 'c1', 'work'), say('S0P2 begins\n'), end(2)]],
  ['the card 0/c1 was made twice', [...begun, card('completed'), card('completed'), end(1)]],
  ['an update of the card 0/c2, which there is not', [...begun, change('completed', 'c2'), end(1)]],
  ['the card 0/c1 has ended and is changed to failed', [...begun, card('completed'), change('failed'), end(1)]],
  ['the card 0/c1 goes back to pending', [...begun, card('in_progress'), change('pending'), change('completed'), end(1)]],
  ['the request 1 was answered while the card 0/c1 was in_progress', [...begun, card('in_progress'), end(1), change('completed')]],
  ['a question about 0/c1 before its card', [...begun, ask(), (judge) => judge.answered('q1'), end(1)]],
  ['a question about 0/c1 behind its end', [...begun, card('completed'), ask(), (judge) => judge.answered('q1'), end(1)]],
  [
    'a question of session 0 while nothing is open',
    [...begun, card('completed'), end(1), card('pending', 'c2', 'x'), ask('c2'), (judge) => judge.answered('q1'), change('failed', 'c2')],
  ],
  ['the question q1 was never taken back', [...begun, card('pending'), ask(), change('completed'), end(1)]],
];

t.test('a history with one fault gives one complaint, and a good one none', async (t) => {
  for (const [complaint, steps] of histories) t.same(complaintsOf(steps), complaint === undefined ? [] : [complaint], complaint ?? 'good');
});

type Data = readonly [type: string, data: object];
const start = (turn: number, key?: string): Data => ['turn/start', { turn, ...(key === undefined ? {} : { key }) }];
const user = (text: string, source = 'prompt'): Data => ['user/message', { source, content: [{ type: 'text', text }] }];
const said = (text: string): Data => ['assistant/message', { text }];
const over = (turn: number, kind = 'completed'): Data => ['turn/end', { turn, reason: { kind } }];
const call = (type: string): Data => [`tool/${type}`, { callId: 'c1' }];
const whole = [start(1), user('say S0P1 begins'), said('S0P1 begins\n'), over(1)];

function complaintsOfLog(events: readonly Data[], known: Partial<Known> = {}): readonly string[] {
  const log = events.map(([type, data], seq) => ({ seq, type, data }) as unknown as LogEvent);
  return judgeEvents(log, { session: 0, seen: new Set(['S0P1']), answers: new Map(), isExact: true, ...known });
}

const answered = (how: string): Partial<Known> => ({ answers: new Map([['S0P1', new Set([how])]]) });
const logs: readonly (readonly [complaint: string | undefined, events: readonly Data[], known?: Partial<Known>])[] = [
  [undefined, whole, answered('end_turn')],
  [undefined, [start(1), call('call'), call('start'), call('result'), over(1)]],
  [undefined, [start(1), user('say S0P1 begins'), user('say S0P12', 'steer'), said('else'), over(1)]],
  [undefined, whole, { ...answered('cancelled'), isExact: false }],
  ['turn 2 begins within turn 1', [start(1), start(2), over(2)]],
  ['turn 1 behind turn 1', [start(1), over(1), start(1), over(1)]],
  ['the key k began a second turn', [start(1, 'k'), over(1), start(2, 'k'), over(2)]],
  ['turn 1 ends and has not begun', [over(1)]],
  ['the call c1 stands twice', [call('call'), call('call'), call('result')]],
  ['tool/start of c1 before its call', [call('start')]],
  ['a second tool/start of c1', [call('call'), call('start'), call('start'), call('result')]],
  ['c1 starts behind its result', [call('call'), call('result'), call('start')]],
  ['the call c1 has 0 results', [call('call')]],
  ['the log says S0P2, which the client never saw', [said('S0P2')]],
  ['S0P1 is completed, and its text is "" and not "S0P1 begins\\n"', [start(1), user('say S0P1 begins'), over(1)]],
  [
    'S0P1 was answered end_turn, and its turn is not completed',
    [start(1), user('say S0P1 begins'), over(1, 'cancelled')],
    answered('end_turn'),
  ],
  ['S0P1 was answered cancelled, and its turn is completed', whole, answered('cancelled')],
  ['S0P1 was answered THREAD_LOST, and its turn is completed', whole, answered('THREAD_LOST')],
];

t.test('a log with one fault gives one complaint, and a good one none', async (t) => {
  for (const [complaint, events, known] of logs)
    t.same(complaintsOfLog(events, known), complaint === undefined ? [] : [complaint], complaint ?? 'good');
  // What comes twice has two results, too.
  t.same(complaintsOfLog([call('call'), call('result'), call('result')]), ['a second tool/result of c1', 'the call c1 has 2 results']);
  const gap = [{ seq: 1, type: 'step/start', data: { turn: 1, step: 1 } }] as unknown as LogEvent[];
  const known = { session: 0, seen: undefined, answers: new Map(), isExact: true };
  t.same(judgeEvents(gap, known), ['event 0 has the number 1']);
});

t.test('a log that does not open is complained of', async (t) => {
  const path = `${t.testdir({ 'S.jsonl': 'no log\n'.repeat(3) })}/S.jsonl`;
  const known = { session: 0, seen: undefined, answers: new Map(), isExact: true };
  const complaints = await judgeLog(path, 'server-1', known);
  t.equal(complaints.length, 1);
  t.match(complaints[0], /does not open/);
});

t.test('a prompt that settles twice is seen, and a late settle that does nothing is none', (t) => {
  const complaints: string[] = [];
  // As if the guard were lost: each settle says that it was the first.
  let isBroken = false;
  replace(
    PendingPrompt.prototype,
    'settle',
    (settle) =>
      function unguarded(this: PendingPrompt, result) {
        return settle.call(this, result) || isBroken;
      },
  );
  watchSettling((what) => void complaints.push(what));
  const good = new PendingPrompt([], {});
  good.settleCancelled();
  good.settleCancelled();
  t.same(complaints, []);
  isBroken = true;
  good.settleCancelled();
  t.same(complaints, ['a prompt was settled twice']);
  const completions = new Completions();
  const told = { kind: 'loaded', sessionId: 's0', requestId: 4, outcome: { ok: true } } as any;
  completions.settle(told);
  completions.settle(told);
  t.same(complaints.slice(1), ['the end of the loaded 4 was told twice']);
  t.end();
});
