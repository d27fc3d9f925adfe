/**
 * A job's page, made from a log on disk and read back with a real parser.
 */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import type { JobResult } from '../../../../../src/main/run/job-result.ts';
import { writeJobPage } from '../../../../../src/main/run/report/write-job-page.ts';
import type { EventInput, EventType } from '../../../../../src/shared/events.ts';
import { sealLine } from '../../../../../src/shared/log/line-seal.ts';
import { type Page, parsePage, textOf, withClass, wordsOf } from '../../../../support/parse-page.ts';
import { sampleResult } from '../../../../support/run-samples.ts';
import { sample, sampleHeader, sampleId, samples } from '../../../shared/log/sample-events.ts';

const evil = '<script>alert(1)</script></pre>\u202e\u001b[2J';

/** A log as a session writes it; each event a second after the one before. */
function writeLog(t: Test, events: readonly EventInput[]): string {
  const path = join(t.testdir({}), 'sessions', `${sampleId}.jsonl`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, sealLine(JSON.stringify(sampleHeader())));
  for (const [seq, event] of events.entries()) appendFileSync(path, sealLine(JSON.stringify({ ...event, seq, time: seq * 1000 })));
  return path;
}

async function pageOf(t: Test, events: readonly EventInput[] | string, result: Partial<JobResult> = {}, prompts?: string[]): Promise<Page> {
  const logPath = typeof events === 'string' ? events : writeLog(t, events);
  const path = join(dirname(logPath), 'page.html');
  await writeJobPage(sampleResult({ logPath, ...result }), { path, reportLink: '../../report.html', prompts });
  const page = parsePage(readFileSync(path, 'utf8'));
  t.same(page.errors, []);
  t.equal(page.elements.filter(({ tagName }) => tagName === 'script').length, 0);
  return page;
}

const call = (callId: string, name: string, args: object): EventInput => ({
  type: 'tool/call',
  data: { turn: 1, step: 1, callId, name, arguments: JSON.stringify(args) },
});
const started = (callId: string): EventInput => ({ type: 'tool/start', data: { turn: 1, step: 1, callId } });
const result = (callId: string, text: string, more: object = {}): EventInput => ({
  type: 'tool/result',
  data: { turn: 1, step: 1, callId, text, isError: false, ...more },
});
const textsOf = (page: Page, name: string) => withClass(page, name).map(wordsOf);

t.test('every event of the log can be shown, and what people want to know of it is', async (t) => {
  const all = (Object.keys(samples) as EventType[]).map(sample);
  const page = await pageOf(t, all);
  for (const words of [
    'Turn 1',
    'key job-17',
    'waited 0.12 s for a place at the model, 3 before it',
    'subagent r1 started at self',
    'Read a.ts (completed)',
    'ended: completed after 0.81 s, in 180 (60 cached), out 30 (5 reasoning), $0.01',
    'Naïve "quotes"',
    '[a.ts](file:///srv/project/a.ts#L3-9)',
    'image image/png, 9 bytes',
    'attached: file:///srv/project/b.md',
    'typed: /explain a.ts',
    '- **Session**: 210 tokens',
    'the images of 1 older messages were left out',
    'model scripted at scripted, 1 tools',
    'I will read the file.',
    'attempt 1 of 3 failed, next in 0.25 s',
    'permission asked: Run ls',
    'allow-session by client, rule commands ask, for ls',
    'permission mode: accept-edits',
    'cut to 200 characters for the model',
    'So far…',
    'turn ended: completed',
    '$0.0020',
  ]) {
    t.ok(page.raw.includes(words), words);
  }
});

t.test('a card shows the call, who allowed it, how it ended and how long it took', async (t) => {
  const decided: EventInput = {
    type: 'permission/decided',
    data: { turn: 1, callId: 'c', outcome: 'allow-once', by: 'policy', rule: 'build' },
  };
  const page = await pageOf(t, [
    sample('turn/start'),
    call('c', 'bash', { command: 'npm test\nnpm run lint', description: 'Run the tests' }),
    decided,
    started('c'),
    result('c', 'for the model', { meta: { exitCode: 2, signal: null, timedOut: false, output: `2 failed ${evil}` } }),
    call('e', 'edit', { file_path: 'a.ts', old_string: 'x'.repeat(300), new_string: 'b' }),
    started('e'),
    result('e', 'Edited', { meta: { diffs: [{ path: '/srv/a.ts', oldText: 'one\ntwo\n', newText: 'one\n2\n' }], omitted: 0 } }),
    call('r', 'read', { file_path: 'gone.ts' }),
    result('r', 'there is no such file', { isError: true, code: 'FS_NOT_FOUND' }),
    call('k', 'bash', { command: 'sleep 9' }),
    started('k'),
    result('k', '', { meta: { exitCode: null, signal: 'SIGKILL', timedOut: false, output: '' } }),
  ]);
  const cards = textsOf(page, 'tool');
  t.match(cards[0], /^npm test ⏎ npm run lint bash exit 2 1.00 s permission: allow-once by policy, rule build/);
  t.match(cards[0], /rule build Run the tests \$ npm test npm run lint 2 failed .* exit 2$/);
  t.ok(withClass(page, 'tool')[0] !== undefined && textOf(withClass(page, 'tool')[0]!).includes(`2 failed ${evil}`), 'output as it came');
  t.match(cards[1], /^Edit a.ts edit done/);
  const [ins, del] = ['ins', 'del'].map((tag) => page.elements.filter(({ tagName }) => tagName === tag).map(textOf));
  t.same([ins, del], [['+2'], ['-two']]);
  t.notMatch(cards[1], 'xxxx', 'the diff says what the arguments would');
  t.match(cards[2], /^Read gone.ts read FS_NOT_FOUND there is no such file/);
  t.match(cards[3], /^sleep 9 bash SIGKILL 1.00 s \$ sleep 9 no output SIGKILL/);
});

t.test('cards stand in the order of their calls, also when they end in another', async (t) => {
  const page = await pageOf(t, [
    call('a', 'first', {}),
    call('b', 'second', {}),
    started('a'),
    started('b'),
    result('b', 'B'),
    result('a', 'A'),
  ]);
  t.same(
    textsOf(page, 'tool').map((text) => text.split(' ')[0]),
    ['first', 'second'],
  );
});

t.test('a log that ends within a turn shows what was open', async (t) => {
  const page = await pageOf(t, [
    sample('turn/start'),
    call('a', 'bash', { command: 'sleep 99' }),
    started('a'),
    call('b', 'bash', { command: 'later' }),
    { type: 'assistant/chunk', data: { turn: 1, step: 2, messageId: 'm', kind: 'text', text: 'I was about to' } },
  ]);
  t.match(textsOf(page, 'tool')[0], 'no result');
  t.match(textsOf(page, 'tool')[1], 'not started');
  t.match(page.text, /unfinished answer\s+I was about to/);
  t.match(page.text, 'the log ends within this turn');
});

t.test('damaged lines, strange data and events of later releases cost nothing but themselves', async (t) => {
  const path = writeLog(t, [
    sample('turn/start'),
    { type: 'later/thing', data: { a: evil } } as unknown as EventInput,
    { type: 'user/message', data: { turn: 1, content: null } } as unknown as EventInput,
  ]);
  const damaged = sealLine(JSON.stringify({ ...sample('todo/write'), seq: 9, time: 1 })).toString();
  appendFileSync(path, damaged.replace('Read', 'Raed'));
  appendFileSync(path, 'not json\n');
  appendFileSync(path, sealLine(JSON.stringify({ ...sample('turn/end'), seq: 3, time: 9 })));
  appendFileSync(path, '{"type":"turn/sta');
  const page = await pageOf(t, path);
  t.match(page.text, 'later/thing');
  t.match(page.text, 'an event that cannot be shown');
  t.match(page.text, 'turn ended: completed');
  t.match(page.text, '3 lines of the log could not be read');
});

t.test('without a log the page has prompts and the final text, and says why', async (t) => {
  const gone = await pageOf(t, join(t.testdir({}), `${sampleId}.jsonl`), { text: 'my last words' }, ['do it']);
  t.match(gone.text, /the log is not there any more[^]*do it[^]*my last words/);
  const path = join(t.testdir({}), 'page.html');
  await writeJobPage(sampleResult({ text: 'my last words' }), { path, reportLink: 'r', prompts: ['do it'] });
  t.match(parsePage(readFileSync(path, 'utf8')).text, /do it[^]*there is no session log[^]*my last words/);
});

t.test('a long session makes a page of bounded size that says what is missing', async (t) => {
  const long = 'word '.repeat(12_000);
  const messages = Array.from({ length: 200 }, (_, step): EventInput => {
    return {
      type: 'assistant/message',
      data: { turn: 1, step, messageId: `m${step}`, text: long, reasoning: '', toolCalls: [], finish: 'stop' },
    };
  });
  const path = writeLog(t, messages);
  const page = join(dirname(path), 'page.html');
  await writeJobPage(sampleResult({ logPath: path }), { path: page, reportLink: 'r' });
  const text = readFileSync(page, 'utf8');
  t.ok(text.length < 7_000_000, `${text.length} characters`);
  t.match(text, /\d+ further pieces are left out here; the log has them all/);
});
