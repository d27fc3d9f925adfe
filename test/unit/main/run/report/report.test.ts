/**
 * The report of a run, made the way the runner has it made, read back with a real parser.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Attempt } from '../../../../../src/main/run/job.ts';
import type { JobResult } from '../../../../../src/main/run/job-result.ts';
import { transcriptName } from '../../../../../src/main/run/report/page-names.ts';
import { ReportFile } from '../../../../../src/main/run/report/report-file.ts';
import type { RunOutcome } from '../../../../../src/main/run/run-event.ts';
import { createObservers, type ViewOptions } from '../../../../../src/main/run/view/create-observers.ts';
import { FakeTerminal } from '../../../../support/fake-terminal.ts';
import { attributeOf, type Page, parsePage, textOf, withClass } from '../../../../support/parse-page.ts';
import { eventsOf, outcomeOf, sampleRandom, sampleResult, sampleStart, variedResult } from '../../../../support/run-samples.ts';

interface Made {
  readonly dir: string;
  readonly said: string;
  readonly page: Page;
}

function plan(dir: string, overrides: Partial<ViewOptions> = {}): ViewOptions & { stdout: FakeTerminal; stderr: FakeTerminal } {
  return {
    mode: 'plain',
    resultsPath: join(dir, 'results.jsonl'),
    reportPath: join(dir, 'report.html'),
    now: () => sampleStart,
    ...overrides,
    stdout: new FakeTerminal({ isTTY: false }),
    stderr: new FakeTerminal({ isTTY: false }),
  };
}

/** Cancelled attempts have no line in the results file. */
function writeResults(dir: string, results: readonly JobResult[], more = ''): void {
  const kept = results.filter(({ status }) => status !== 'cancelled');
  writeFileSync(join(dir, 'results.jsonl'), kept.map((result) => `${JSON.stringify(result)}\n`).join('') + more);
}

async function makeReport(
  t: Test,
  results: readonly JobResult[],
  options: { overrides?: Partial<ViewOptions>; outcome?: Partial<RunOutcome>; more?: string } = {},
): Promise<Made> {
  const dir = t.testdir({});
  writeResults(dir, results, options.more);
  const views = plan(dir, options.overrides);
  const [observer] = createObservers(views);
  for (const event of eventsOf(results, 8)) observer!.onEvent(event);
  await observer!.finish!(outcomeOf(results, options.outcome));
  return { dir, said: views.stdout.text, page: parsePage(readFileSync(join(dir, 'report.html'), 'utf8')) };
}

const rowsOf = (page: Page) => page.elements.filter((element) => element.tagName === 'tr' && attributeOf(element, 'data-s') !== undefined);
const cellsOf = (row: Page['elements'][number]) => row.childNodes.filter((node) => node.nodeName === 'td').map((cell) => textOf(cell));

t.test('the report has every attempt with its figures and a link to its page, and asks for nothing from elsewhere', async (t) => {
  const random = sampleRandom(1);
  const results = Array.from({ length: 60 }, (_, index) => variedResult(index, random));
  const { dir, page } = await makeReport(t, results, { outcome: { total: 65, notRun: 5, stopped: 'max-cost' } });
  t.same(page.errors, []);
  t.equal(rowsOf(page).length, 60);
  const failed = results.find(({ status }) => status === 'failed')!;
  const row = rowsOf(page).find((each) => cellsOf(each)[0] === failed.key);
  t.match(cellsOf(row!), [failed.key, /^failed/, 'end_turn', /s$/, /k$/, /^\$/, 'exit 1: 1 of 12 tests failed', /suite=/]);
  const links = page.elements.filter(({ tagName }) => tagName === 'a').map((link) => attributeOf(link, 'href')!);
  t.same(
    links.filter((href) => !existsSync(join(dir, decodeURIComponent(href)))),
    [],
    'every link leads to a page',
  );
  t.same(page.elements.filter(reachesOut), []);
  t.equal(page.elements.filter(({ tagName }) => tagName === 'script').length, 1);
  t.match(page.text, /The run was ended early by the cost limit/);
  t.match(page.text, /5 not run/);
  t.match(page.text, /pass rate by job/, 'jobs were run twice');
  t.match(page.text, /Output tokens over time/);
  const bar = page.elements.filter(
    (element) => attributeOf(element, 'class')?.startsWith('f-') === true && attributeOf(element, 'height') === '10',
  );
  const widths = bar.reduce((sum, part) => sum + Number(attributeOf(part, 'width')), 0);
  t.ok(Math.abs(widths - 1000) < 0.1, 'the parts of the bar make up the whole');
});

/** Whether the element loads something, or runs something when a person does something. */
function reachesOut({ tagName, attrs }: Page['elements'][number]): boolean {
  const names = attrs.map(({ name }) => name);
  return (
    ['link', 'img', 'iframe', 'object', 'embed', 'base'].includes(tagName) || names.some((name) => name === 'src' || name.startsWith('on'))
  );
}

t.test('hostile names, labels and outputs stay text', async (t) => {
  const evil = '</td></table><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\u001b[2J"\'&amp;';
  const result = sampleResult({
    key: `../../${evil}/`,
    id: evil,
    status: 'failed',
    stopReason: evil,
    text: evil,
    error: evil,
    errorClass: 'model',
    labels: { [evil]: evil },
    check: { exitCode: 1, signal: null, timedOut: false, output: evil },
    patch: `+${evil}\n-${evil}\n`,
    sessionId: evil,
  });
  const { dir, page } = await makeReport(t, [result], { overrides: {} });
  const folder = join(dir, 'report', 'transcripts');
  const names = readdirSync(folder).filter((name) => name !== 'style.css');
  t.same(names, [transcriptName(result.key)]);
  t.match(names[0], /^[A-Za-z0-9._-]+\.html$/);
  const own = parsePage(readFileSync(join(folder, names[0]!), 'utf8'));
  for (const each of [page, own]) {
    t.same(each.errors, []);
    t.equal(each.elements.filter(({ tagName }) => tagName === 'img').length, 0);
    t.equal(each.elements.filter(({ tagName }) => tagName === 'script').length, each === page ? 1 : 0);
    // oxlint-disable-next-line no-control-regex -- what must not be there
    t.notMatch(readFileSync(join(dir, 'report.html'), 'utf8'), /[\u001b\u202e]/);
  }
  t.match(own.raw, evil, 'the check output is shown whole');
  t.same(withClass(own, 'diff').length, 1);
});

t.test('the policy of the page allows its own script alone', async (t) => {
  const { createHash } = await import('node:crypto');
  const { page } = await makeReport(t, [sampleResult()]);
  const policy = page.elements.map((element) => attributeOf(element, 'content')).find((content) => content?.includes('default-src'));
  const script = page.elements.find(({ tagName }) => tagName === 'script')!;
  const hash = createHash('sha256').update(textOf(script)).digest('base64');
  t.match(policy, `script-src 'sha256-${hash}'`);
  t.match(policy, "default-src 'none'");
});

t.test('job pages share one style sheet and allow nothing else; one that is there stays until its attempt is run anew', async (t) => {
  const { times } = sampleResult();
  const early = sampleResult({ key: 'early' });
  const { dir } = await makeReport(t, [early]);
  const folder = join(dir, 'report', 'transcripts');
  const path = join(folder, transcriptName('early'));
  const page = parsePage(readFileSync(path, 'utf8'));
  const link = page.elements.find(({ tagName }) => tagName === 'link')!;
  t.match(readFileSync(join(folder, attributeOf(link, 'href')!), 'utf8'), /body\{/);
  const policy = page.elements.map((element) => attributeOf(element, 'content')).find((content) => content?.includes('default-src'));
  t.match(policy, /^default-src 'none'; style-src 'self'; script-src 'none';/);
  t.equal(page.elements.filter((element) => element.tagName === 'style' || attributeOf(element, 'style') !== undefined).length, 0);

  const make = async (result: JobResult): Promise<void> => {
    writeResults(dir, [result, sampleResult({ key: 'new' })]);
    await createObservers(plan(dir))[0]!.finish!(outcomeOf([result]));
  };
  writeFileSync(path, 'as it was');
  await make(early);
  t.equal(readFileSync(path, 'utf8'), 'as it was');
  t.same(readdirSync(folder).sort(), [transcriptName('early'), transcriptName('new'), 'style.css'].sort());
  await make(sampleResult({ key: 'early', times: { ...times, endedAt: new Date(Date.now() + 60_000).toISOString() } }));
  t.match(readFileSync(path, 'utf8'), /<!doctype html>/);
});

t.test('the report of thousands of attempts has a bounded size', async (t) => {
  const random = sampleRandom(5);
  const results = Array.from({ length: 2000 }, (_, index) => variedResult(index, random));
  const dir = t.testdir({});
  writeResults(dir, results);
  const views = plan(dir, { mode: 'quiet' });
  const [observer] = createObservers(views);
  for (const event of eventsOf(results, 50)) observer!.onEvent(event);
  const started = performance.now();
  await observer!.finish!(outcomeOf(results));
  t.comment(`made in ${(performance.now() - started).toFixed(0)} ms`);
  const { size } = statSync(join(dir, 'report.html'));
  t.ok(size < 2000 * 1200, `${size} bytes`);
  t.equal(readFileSync(join(dir, 'report.html'), 'utf8').match(/<tr data-s/g)?.length, 2000);
  t.equal(views.stdout.text, '', 'quiet is quiet');
});

t.test('rows that a browser could not take give way, good ones first', async (t) => {
  const dir = t.testdir({});
  const results = [
    ...Array.from({ length: 6 }, (_, index) => sampleResult({ key: `good-${index}` })),
    ...Array.from({ length: 3 }, (_, index) => sampleResult({ key: `bad-${index}`, status: 'failed' })),
  ];
  writeResults(dir, results);
  const { exportRun } = await import('../../../../../src/main/run/report/export-run.ts');
  const { TimeLine } = await import('../../../../../src/main/run/report/time-line.ts');
  await exportRun({
    resultsPath: join(dir, 'results.jsonl'),
    exporters: [new ReportFile(join(dir, 'r.html'), 5)],
    outcome: outcomeOf(results),
    timeLine: new TimeLine(),
    attempts: undefined,
    cancelled: [],
    now: 0,
  });
  const page = parsePage(readFileSync(join(dir, 'r.html'), 'utf8'));
  t.same(
    rowsOf(page).map((row) => cellsOf(row)[0]),
    ['good-0', 'good-1', 'bad-0', 'bad-1', 'bad-2'],
  );
  t.match(page.text, /4 attempts are left out here/);
  t.match(page.text, /9/, 'figures count them all');
});

t.test('the last line of an attempt counts; torn and damaged lines, and those of other jobs, do not', async (t) => {
  const attempt = (id: string): Attempt => ({
    key: id,
    repeat: 0,
    seed: 0,
    modelSeed: undefined,
    job: { id, labels: {}, prompts: ['p'] } as never,
  });
  const results = [
    sampleResult({ key: 'a', id: 'a', status: 'failed' }),
    sampleResult({ key: 'a', id: 'a', status: 'passed' }),
    sampleResult({ key: 'gone', id: 'gone' }),
  ];
  const { page } = await makeReport(t, results, {
    more: `not json\n{"version":1}\n{"key":"to`,
    overrides: { attempts: [attempt('a'), attempt('b')] },
  });
  t.same(
    rowsOf(page).map((row) => cellsOf(row).slice(0, 2)),
    [['a', 'passed']],
  );
});

t.test('a cancelled attempt has no line in the results file and is in the report all the same', async (t) => {
  const { page } = await makeReport(t, [sampleResult({ key: 'a' }), sampleResult({ key: 'b', status: 'cancelled' })]);
  t.same(
    rowsOf(page).map((row) => cellsOf(row)[0]),
    ['a', 'b'],
  );
});

t.test('the summary says what came of the run and where everything is', async (t) => {
  const check = { exitCode: 0, signal: null, timedOut: false, output: '' };
  const slow = { ...sampleResult().times, totalMs: 99_000 };
  const results = [
    sampleResult({ key: 'a', logPath: '/state/sessions/1.jsonl', check }),
    sampleResult({ key: 'slow', status: 'failed', check: { ...check, exitCode: 1 }, times: slow, logPath: '/state/sessions/2.jsonl' }),
    sampleResult({ key: 'broken', status: 'error', errorClass: 'model', error: 'the server answered 500' }),
  ];
  const { dir, said } = await makeReport(t, results, { outcome: { notRun: 2, total: 5, stopped: 'signal' } });
  const summary = said.slice(said.indexOf('\nattempts'));
  t.match(summary, /attempts {5}5 in 1m 00s, 2 not run; ended early by a signal/);
  t.match(summary, /outcome {6}passed 1 {2}failed 1 {2}error 1 {2}\(50% of 2 checks in this run passed\)/);
  t.match(summary, /duration {5}p50 12.3 s {2}p95 1m 39s {2}max 1m 39s/);
  t.match(summary, /slowest {8}1m 39s {2}failed {5}slow\n/);
  t.match(summary, /errors {7}model 1\n {13}broken {2}model: the server answered 500/);
  t.match(summary, `results      ${join(dir, 'results.jsonl')}`);
  t.match(summary, `report       ${join(dir, 'report.html')}`);
  t.match(summary, 'logs         /state/sessions');
});

t.test('guessed tokens are marked wherever tokens are shown, and those of subagents stand beside the rest', async (t) => {
  const subagents = { inputTokens: 7000, outputTokens: 2000, cacheReadTokens: 0, reasoningTokens: 0 };
  const result = sampleResult({ usage: { ...sampleResult().usage!, guessedTokens: 4000, subagents } });
  const { dir, page, said } = await makeReport(t, [result], { outcome: { usage: result.usage! } });
  t.match(said, /tokens .* out 200 \(50 reasoning\) {2}≈ 4\.00k guessed {2}subagents in 7\.00k, out 2\.00k {2}/);
  t.match(said, /≈ 5\.70k tokens/, 'the line of the attempt');
  t.equal(cellsOf(rowsOf(page)[0]!)[4], '≈ 5.70k');
  t.match(page.text, /guessed tokens ≈ 4\.00k/);
  t.match(page.text, /subagents 9\.00k/);
  t.match(readFileSync(join(dir, 'report', 'transcripts', transcriptName('job')), 'utf8'), '≈ 4.00k guessed; subagents in 7.00k');
});

t.test('a file that cannot be put where it is to be is refused before the run, one that fails after it leaves the others', async (t) => {
  const dir = t.testdir({ file: '', taken: {} });
  t.throws(() => createObservers(plan(dir, { junitPath: join(dir, 'file', 'junit.xml') })), { code: 'CONFIG_INVALID' });
  writeResults(dir, [sampleResult()]);
  mkdirSync(join(dir, 'new'));
  const views = plan(dir, { junitPath: join(dir, 'taken'), reportPath: join(dir, 'new', 'deep', 'r.html') });
  const [observer] = createObservers(views);
  await t.rejects(observer!.finish!(outcomeOf([sampleResult()])), { code: 'INTERNAL', message: /junit \(EISDIR/ });
  t.ok(existsSync(join(dir, 'new', 'deep', 'r.html')));
  t.match(views.stdout.text, /junit {8}not written: EISDIR/);
  t.same(
    readdirSync(dir).filter((name) => name.endsWith('.partial')),
    [],
  );
});

t.test('page names are safe and differ, also where case does not count', async (t) => {
  const keys = ['a', 'A', 'a/b', 'a-b', '..', '', 'x'.repeat(500), 'con', '日本', '日', '-rf', '.hidden'];
  const names = keys.map(transcriptName);
  t.equal(new Set(names.map((name) => name.toLowerCase())).size, keys.length);
  for (const name of names) t.match(name, /^[A-Za-z0-9][A-Za-z0-9._-]{0,110}\.html$/);
});
