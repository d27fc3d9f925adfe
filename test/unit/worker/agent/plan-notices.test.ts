/** What the model hears of plan mode: once, and again when it can no longer know. */
import t from 'tap';
import type { EventInput, LogEvent, PermissionMode } from '../../../../src/shared/events.ts';
import { PlanNotices } from '../../../../src/worker/agent/plan-notices.ts';

class Rig {
  readonly log: LogEvent[] = [];
  notices: PlanNotices;
  readonly #hasTool: boolean;

  constructor(hasTool = true) {
    this.#hasTool = hasTool;
    this.notices = new PlanNotices(hasTool);
  }

  add(event: object): void {
    const logged = { ...event, seq: this.log.length, time: 0 } as LogEvent;
    this.log.push(logged);
    this.notices.observe(logged);
  }

  /** A step in this mode, with the notice in the log if there is one. */
  step(mode: PermissionMode, turn = 1): string | undefined {
    const text = this.notices.next(mode);
    if (text !== undefined) this.say(text, turn);
    return text;
  }

  say(text: string, turn: number, source = 'notice'): void {
    this.add({ type: 'user/message', data: { turn, messageId: 'm', source, content: [{ type: 'text', text }] } });
  }

  /** The same session on another thread. */
  reattach(): void {
    this.notices = new PlanNotices(this.#hasTool);
    for (const event of this.log) this.notices.observe(event);
  }
}

const end = (kind: string, turn = 1): EventInput =>
  ({ type: 'turn/end', data: { turn, reason: { kind }, usage: {} } }) as unknown as EventInput;

t.test('the model hears of plan mode once, of its end once, and of nothing in between', async (t) => {
  const rig = new Rig();
  t.equal(rig.step('ask'), undefined);
  t.match(rig.step('plan'), /Plan mode is on.*exit_plan_mode/);
  t.equal(rig.step('plan'), undefined);
  t.match(rig.step('accept-edits'), /Plan mode is over.*"accept-edits".*possible again/);
  t.equal(rig.step('ask'), undefined);
  t.match(rig.step('plan'), /is on/);
  t.match(rig.step('read-only'), /over.*Still nothing may be changed/);
});

t.test('without the tool it is not told to call it', async (t) => {
  const text = new Rig(false).step('plan');
  t.match(text, /as your answer/);
  t.notMatch(text, /exit_plan_mode/);
});

t.test('a session that comes back from its log neither repeats nor forgets it', async (t) => {
  const rig = new Rig();
  rig.step('plan');
  rig.reattach();
  t.equal(rig.step('plan'), undefined);
  t.match(rig.step('ask'), /is over/);
  rig.reattach();
  t.equal(rig.step('ask'), undefined);
  t.match(rig.step('plan'), /is on/);
});

t.test('an approved plan has told the model already', async (t) => {
  const rig = new Rig();
  rig.step('plan');
  const result = { turn: 1, step: 1, callId: 'c', text: 'approved', isError: false };
  rig.add({ type: 'tool/result', data: { ...result, meta: { approvedMode: 'ask' } } });
  t.equal(rig.step('ask'), undefined);
  rig.step('plan');
  rig.add({ type: 'tool/result', data: { ...result, callId: 'd' } });
  t.match(rig.step('ask'), /is over/, 'any other result has not');
});

t.test('it is told again when a summary, a refusal or a rewind has taken it away', async (t) => {
  const compacted = new Rig();
  compacted.step('plan');
  compacted.add({ type: 'history/compacted', data: { throughSeq: 0, summary: 's' } });
  t.match(compacted.step('plan'), /is on/);
  compacted.add({ type: 'history/compacted', data: { throughSeq: 0, summary: 's' } });
  t.equal(compacted.step('plan'), undefined, 'one that did not reach it took nothing');

  const refused = new Rig();
  refused.step('plan', 1);
  refused.add(end('completed', 1));
  refused.step('ask', 2);
  refused.add(end('refusal', 2));
  t.match(refused.step('ask', 3), /is over/);

  const rewound = new Rig();
  rewound.step('plan');
  rewound.add({ type: 'history/rewound', data: { base: 0 } });
  t.match(rewound.step('plan'), /is on/);
});

t.test('what a person or a model says is no notice', async (t) => {
  const rig = new Rig();
  rig.say('[Plan mode is on: says the person]', 1, 'prompt');
  t.match(rig.step('plan'), /is on/);
});
