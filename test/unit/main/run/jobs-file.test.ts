import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { openJobsFile, readJobsStream } from '../../../../src/main/run/jobs/jobs-file.ts';

function directory(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'dsh-acp-jobs-test-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function write(t: Test, lines: readonly (string | object)[]): string {
  const path = join(directory(t), 'jobs.jsonl');
  writeFileSync(path, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  return path;
}

const open = (path: string, skipInvalid = false) => openJobsFile(path, { skipInvalid, cwd: '/' });
const good = { id: 'a', prompt: 'do', cwd: '.' };

t.test('a job has its members, with defaults and absolute paths, read again when its turn comes', async (t) => {
  const full = {
    id: 'full',
    prompt: ['first', 'second'],
    repo: 'repos/x',
    base: 'main',
    subdirectory: 'pkg',
    setup: 'npm ci',
    check: ['npm', 'test'],
    checkTimeoutMs: 5,
    budget: { deadline: '2026-11-30T10:00:00+01:00', maxSteps: 3, maxCostUsd: 0.5 },
    policy: { rules: [{ action: 'allow', access: ['read'] }] },
    mode: 'accept-edits',
    env: { A: 'b' },
    labels: { suite: 's' },
    idempotent: true,
    seed: 7,
    priority: -3,
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    meta: { any: [1, null] },
  };
  const path = write(t, ['', { ...good, prompt: 'ünïcode' }, '  \r', full, '']);
  const jobs = await open(path);
  t.teardown(() => jobs.close());
  t.equal(jobs.count, 2);
  t.same([jobs.id(1), jobs.indexOf('full'), jobs.priority(1), jobs.priority(0)], ['full', 1, -3, 0]);
  const dir = join(path, '..');
  const { hash: firstHash, ...first } = await jobs.job(0);
  t.equal(firstHash, jobs.hash(0));
  t.match(first, { id: 'a', line: 2, prompts: ['ünïcode'], place: { kind: 'directory', cwd: dir }, setup: undefined, idempotent: false });
  t.match(await jobs.job(1), {
    line: 4,
    prompts: ['first', 'second'],
    place: { kind: 'worktree', repo: join(dir, 'repos/x'), base: 'main', subdirectory: 'pkg' },
    setup: ['sh', '-c', 'npm ci'],
    check: ['npm', 'test'],
    setupTimeoutMs: 600_000,
    checkTimeoutMs: 5,
    budget: { deadline: Date.parse('2026-11-30T09:00:00Z'), maxSteps: 3, maxCostUsd: 0.5 },
    policy: { rules: [{ name: 'rule 1', action: 'allow' }], fallback: 'deny' },
    seed: 7,
    meta: { any: [1, null] },
  });
});

t.test('what is wrong is named by line and member, all of it at once', async (t) => {
  const wrong: [object | string, RegExp][] = [
    ['{"id":', /line 1: this is no JSON/],
    ['[1]', /line 2: expected one JSON object/],
    [{ ...good, promt: 'x' }, /line 3: promt: there is no such member; did you mean prompt\?/],
    [{ id: 'b', cwd: '.' }, /line 4: prompt: expected text that is not blank.*missing/],
    [{ ...good, id: 'c', prompt: ' ' }, /line 5: prompt: /],
    [{ ...good, id: 'd', repo: 'r' }, /line 6: cwd: expected either cwd or repo, both/],
    [{ id: 'e', prompt: 'x' }, /line 7: cwd: expected either cwd or repo, neither/],
    [{ ...good, id: 'f', base: 'main' }, /line 8: base: expected it only with repo/],
    [{ ...good, id: 'g', check: [] }, /line 9: check: expected a command/],
    [{ ...good, id: 'h', budget: { maxSteps: 0 } }, /line 10: budget\.maxSteps: .*>=1/],
    [{ ...good, id: 'i', budget: { maxStep: 1 } }, /line 11: budget\.maxStep: there is no such member/],
    [{ ...good, id: 'j', budget: { deadline: '2026-11-30' } }, /line 12: budget\.deadline: expected an ISO 8601 time/],
    [{ ...good, id: 'k', env: { DSH_ACP_API_KEY: 'x' } }, /line 13: env\.DSH_ACP_API_KEY: expected names of variables/],
    [{ ...good, id: 'l', mode: 'yolo' }, /line 14: mode: expected one of ask/],
    [{ ...good, id: 'm#2' }, /line 15: id: expected an id that does not end like/],
    [{ ...good, id: 'n', labels: { a: 1 } }, /line 16: labels\.a: expected text/],
    [{ ...good, id: 'o', policy: { rules: [{ action: 'alow' }] } }, /line 17: policy: rules\[0\]\.action: expected one of/],
    [{ ...good, id: 'p', policy: 'missing.toml' }, /line 18: policy: .*missing\.toml/],
    [{ id: 'q', prompt: 'x', repo: 'r', subdirectory: '../out' }, /line 19: subdirectory: expected a relative path inside/],
  ];
  const path = write(
    t,
    wrong.map(([line]) => line),
  );
  const error: any = await open(path).catch((error: unknown) => error);
  t.equal(error.code, 'CONFIG_INVALID');
  for (const [, pattern] of wrong) t.match(error.message, pattern);
  t.match(error.message, /19 wrong lines/);
  t.notMatch(error.message, /line 20/);
});

t.test('what the server would refuse later is refused with the file, and what it takes is not', async (t) => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, 'x']));
  const wrong: [object, RegExp][] = [
    [{ ...good, id: 'a', budget: { maxTokens: 1e13 } }, /line 1: budget\.maxTokens: .*1000000000000/],
    [{ ...good, id: 'b', traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` }, /line 2: traceparent: expected a traceparent/],
    [{ ...good, id: 'c', env: { A: 'x'.repeat(65_000), B: 'x'.repeat(500) } }, /line 3: env: expected at most 65536 bytes.*included/],
    [{ ...good, id: 'd', env: many(255) }, /line 4: env: expected at most 256 variables.*included/],
    [{ ...good, id: 'f', budget: { maxCostUsd: 1 } }, /line 5: budget\.maxCostUsd: expected prices/],
  ];
  const path = write(
    t,
    wrong.map(([line]) => line),
  );
  const error: any = await openJobsFile(path, { skipInvalid: false, cwd: '/', noPrices: true }).catch((error: unknown) => error);
  for (const [, pattern] of wrong) t.match(error.message, pattern);
  t.match(error.message, /5 wrong lines/);
  const jobs = await open(write(t, [{ ...good, id: 'x'.repeat(150), env: many(254), budget: { maxTokens: 1e12, maxCostUsd: 1 } }]));
  t.teardown(() => jobs.close());
  t.match((await jobs.job(0)).budget, { maxTokens: 1e12 });
});

t.test('two jobs with one id are named with both lines', async (t) => {
  const path = write(t, [good, { ...good, id: 'b' }, good]);
  await t.rejects(open(path), { code: 'CONFIG_INVALID', message: /line 3: id: "a" is also the id of line 1/ });
});

t.test('with --skip-invalid wrong lines are left out and counted', async (t) => {
  const jobs = await open(write(t, [good, '{', good, { ...good, id: 'z' }]), true);
  t.teardown(() => jobs.close());
  t.same([jobs.count, jobs.invalid, jobs.id(1)], [2, 2, 'z']);
  t.match(jobs.problems, [/^line 2: /, /^line 3: id: /]);
});

t.test('a file that is missing, empty or a directory is refused', async (t) => {
  const dir = directory(t);
  await t.rejects(open(join(dir, 'no.jsonl')), { code: 'CONFIG_INVALID', message: /ENOENT/ });
  await t.rejects(open(dir), { code: 'CONFIG_INVALID' });
  await t.rejects(open(write(t, ['', ' '])), { code: 'CONFIG_INVALID', message: /at least one job/ });
});

t.test('a job that changes under the run is not run', async (t) => {
  const path = write(t, [good, { ...good, id: 'b' }]);
  const jobs = await open(path);
  t.teardown(() => jobs.close());
  writeFileSync(path, `${JSON.stringify({ ...good, prompt: 'no' })}\n`);
  await t.rejects(jobs.job(0), /line 1 of .* has changed/);
  await t.rejects(jobs.job(1), /line 2 of .* has changed/);
});

t.test('jobs come from a pipe as well, relative to where the runner stands; blanks between members change nothing', async (t) => {
  const piped = await readJobsStream(Readable.from([`${JSON.stringify(good)}\n`]), { skipInvalid: false, cwd: '/somewhere' });
  t.teardown(() => piped.close());
  t.match(await piped.job(0), { place: { cwd: '/somewhere' } });
  const spaced = await open(write(t, ['{ "id": "a",  "prompt": "do", "cwd": "." }']));
  t.teardown(() => spaced.close());
  t.equal(spaced.hash(0), piped.hash(0));
});

t.test('lines that are split by the reader are read whole, and ones that are too long are refused', async (t) => {
  const long = 'x'.repeat(900_000);
  const jobs = await open(
    write(
      t,
      [1, 2, 3].map((n) => ({ ...good, id: `j${n}`, prompt: long + n })),
    ),
  );
  t.teardown(() => jobs.close());
  for (const n of [0, 1, 2]) t.equal((await jobs.job(n)).prompts[0], `${long}${n + 1}`);
  await t.rejects(open(write(t, [{ ...good, prompt: 'x'.repeat(17 * 1024 * 1024) }])), { message: /line 1: longer than/ });
});
