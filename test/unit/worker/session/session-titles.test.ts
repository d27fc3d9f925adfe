/** The title of a session: when it is given, what it is made of, and what becomes of a question that is taken back. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { EventInput, LogEvent } from '../../../../src/shared/events.ts';
import type { SubagentUsage } from '../../../../src/shared/subagent-protocol.ts';
import type { SessionTask } from '../../../../src/shared/thread-protocol.ts';
import type { TitleAnswer, TitledTurn } from '../../../../src/worker/agent/title-call.ts';
import { SessionTitles } from '../../../../src/worker/session/session-titles.ts';

class TitleRig {
  readonly titles: SessionTitles;
  readonly logged: EventInput[] = [];
  readonly asked: TitledTurn[] = [];
  readonly charged: SubagentUsage[] = [];
  readonly dir: string;
  refuses = false;
  answer: (answer: TitleAnswer | undefined) => void = () => undefined;
  signal: AbortSignal | undefined;

  constructor(t: Test, settings: object = {}, task: object = {}) {
    this.dir = join(t.testdir({}), 'session.d');
    const given = { profile: 'editor', titles: 'model', model: { kind: 'openai-compatible' }, ...settings };
    this.titles = new SessionTitles({ settings: given, spillDir: this.dir, ...task } as unknown as SessionTask, {
      record: (event) => {
        if (this.refuses) throw new Error('no space left');
        this.logged.push(event);
        const logged = { ...event, seq: this.logged.length, time: 1000 } as LogEvent;
        this.titles.observe(logged);
        return logged;
      },
      askModel: (turn, signal) => {
        this.asked.push(turn);
        this.signal = signal;
        return new Promise((resolve) => {
          this.answer = resolve;
        });
      },
      charge: (usage) => this.charged.push(usage),
    });
  }

  said(text: string, more: object = {}): void {
    const data = { turn: 1, messageId: 'm', source: 'prompt' as const, content: [{ type: 'text' as const, text }], ...more };
    this.titles.observe({ type: 'user/message', data, seq: 0, time: 7 });
  }

  async ended(kind: 'completed' | 'cancelled' | 'error', text?: string): Promise<void> {
    const reason = kind === 'error' ? { kind, code: 'X', message: 'x' } : { kind };
    this.titles.turnEnded({ reason, ...(text === undefined ? {} : { text }) });
    await this.settled();
  }

  /** Behind whatever was put off to the next turn of the event loop. */
  async settled(): Promise<void> {
    for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  get file(): string | undefined {
    const path = join(this.dir, 'title');
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  get given(): string[] {
    return this.logged.flatMap((event) => (event.type === 'session/title' ? [`${event.data.source}: ${event.data.title}`] : []));
  }
}

const usage = { inputTokens: 5, outputTokens: 1, cacheReadTokens: 0, reasoningTokens: 0, costUsd: 0.1 };

t.test('the prompt gives a title at once, the model one when it answers', async (t) => {
  const rig = new TitleRig(t);
  rig.said('Mend it\nnow');
  const ended = rig.ended('completed', 'Mended.');
  t.same(rig.given, ['prompt: Mend it'], 'before the turn is answered');
  t.same(rig.asked, [], 'and the model is asked behind that');
  await ended;
  t.same(rig.asked, [{ prompt: 'Mend it\nnow', answer: 'Mended.' }]);
  t.equal(rig.file, undefined, 'the list finds the first prompt by itself');
  rig.answer({ title: 'A mended thing', usage });
  await rig.settled();
  t.same(rig.given, ['prompt: Mend it', 'model: A mended thing']);
  t.same(rig.charged, [usage]);
  t.equal(rig.file, 'A mended thing');
  await rig.ended('completed');
  t.equal(rig.asked.length, 1, 'once');
});

t.test('an answer of no use leaves the title, and counts', async (t) => {
  const rig = new TitleRig(t);
  rig.said('Mend it');
  await rig.ended('completed');
  rig.answer({ usage });
  await rig.settled();
  t.same(rig.given, ['prompt: Mend it', 'prompt: Mend it']);
  t.same(rig.charged, [usage]);
  t.equal(rig.file, undefined);
  const silent = new TitleRig(t);
  silent.said('Mend it');
  await silent.ended('completed');
  silent.answer(undefined);
  await silent.settled();
  t.same(silent.given, ['prompt: Mend it'], 'a failure says nothing more');
});

t.test('a question that is taken back logs nothing, however late its answer comes', async (t) => {
  const rig = new TitleRig(t);
  rig.said('Mend it');
  await rig.ended('completed');
  rig.titles.stop();
  t.equal(rig.signal?.aborted, true);
  rig.answer({ title: 'Too late', usage });
  await rig.settled();
  t.same(rig.given, ['prompt: Mend it']);
  t.same(rig.charged, []);
  const early = new TitleRig(t);
  early.said('Mend it');
  early.titles.turnEnded({ reason: { kind: 'completed' } });
  early.titles.stop();
  await early.settled();
  t.same(early.asked, [], 'not even asked');
});

t.test('a turn that came to nothing is no reason to ask; the next good one is', async (t) => {
  const rig = new TitleRig(t);
  rig.said('Mend it');
  await rig.ended('cancelled');
  await rig.ended('error');
  t.same([rig.given, rig.asked], [['prompt: Mend it'], []]);
  await rig.ended('completed');
  t.equal(rig.asked.length, 1);
});

t.test('what was typed counts, not what a command made of it; blank prompts and notices give none', async (t) => {
  const rig = new TitleRig(t, { titles: 'prompt' });
  rig.said('Be brief.', { source: 'notice' });
  rig.said(' \n\u200b ');
  await rig.ended('completed');
  t.same(rig.given, []);
  t.equal(rig.titles.unlogged, undefined);
  rig.said('Explain at length: a.ts', { shown: [{ type: 'text', text: '/explain a.ts' }] });
  t.same(rig.titles.unlogged, { title: '/explain a.ts', time: 7 });
  await rig.ended('completed');
  t.same([rig.given, rig.asked], [['prompt: /explain a.ts'], []]);
});

t.test('a stored title stays, and its file is made again', async (t) => {
  const rig = new TitleRig(t);
  rig.said('Mend it');
  rig.titles.observe({ type: 'session/title', data: { title: 'Mending', source: 'model' }, seq: 1, time: 1 });
  rig.titles.opened();
  t.equal(rig.file, 'Mending', 'the log may be a copy');
  await rig.ended('completed');
  t.same([rig.given, rig.asked], [[], []]);
});

t.test('no title is made for a program, for a session that works for another, or where they are off', async (t) => {
  const cases: [object, object][] = [
    [{ profile: 'automation' }, {}],
    [{}, { audience: 'parent' }],
    [{ titles: 'off' }, {}],
  ];
  for (const [settings, task] of cases) {
    const rig = new TitleRig(t, settings, task);
    rig.said('Mend it');
    await rig.ended('completed');
    t.same([rig.given, rig.asked, rig.titles.unlogged], [[], [], undefined]);
  }
  const scripted = new TitleRig(t, { model: { kind: 'scripted' } });
  scripted.said('read README.md');
  await scripted.ended('completed');
  t.same([scripted.given, scripted.asked], [['prompt: read README.md'], []], 'a script would take the question for a command');
});

t.test('a log that takes nothing more costs the title alone', async (t) => {
  const rig = new TitleRig(t);
  rig.said('Mend it');
  rig.refuses = true;
  await rig.ended('completed');
  rig.answer({ title: 'Mending', usage });
  await rig.settled();
  t.same([rig.given, rig.charged, rig.file], [[], [], undefined]);
});

t.test('a prompt that a list does not read to its end leaves its title in the file', async (t) => {
  const rig = new TitleRig(t, { titles: 'prompt' });
  const image = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(100_000) };
  rig.said('', { content: [image, { type: 'text', text: 'What is this?' }] });
  await rig.ended('completed');
  t.equal(rig.file, 'What is this?');
});
