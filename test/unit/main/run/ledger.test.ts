import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t, { type Test } from 'tap';
import { identifySelf } from '../../../../src/shared/process-identity.ts';
import type { Job } from '../../../../src/main/run/job.ts';
import type { JobResult } from '../../../../src/main/run/job-result.ts';
import { Attempts } from '../../../../src/main/run/jobs/attempts.ts';
import { singleJob } from '../../../../src/main/run/jobs/job-source.ts';
import { Ledger } from '../../../../src/main/run/ledger/ledger.ts';

/** Attempts `j`, `j#1`, `j#2` … of one job. */
const attempts = (count: number, hash = 'h') => new Attempts(singleJob({ id: 'j', hash, priority: 0 } as Job), count);

const result = (index: number, more: Partial<JobResult> = {}) =>
  ({ version: 1, key: index === 0 ? 'j' : `j#${index}`, jobHash: 'h', status: 'passed', text: `tëxt ${index}`, ...more }) as JobResult;

const line = (index: number, more: Partial<JobResult> = {}) => `${JSON.stringify(result(index, more))}\n`;

function place(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'dsh-acp-ledger-test-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return join(dir, 'results.jsonl');
}

interface Opened {
  readonly ledger: Ledger;
  readonly earlier: string[];
}

async function open(path: string, count: number, options: object = {}): Promise<Opened> {
  const earlier: string[] = [];
  const onEarlier = (found: JobResult) => void earlier.push(found.key);
  const base = { path, attempts: attempts(count), ordered: false, retryErrors: false, force: false, onEarlier };
  return { ledger: await Ledger.open({ ...base, ...options }), earlier };
}

const keys = (path: string): string[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text).key);

t.test('results are kept as whole lines, and found again by the next run', async (t) => {
  const path = place(t);
  const first = await open(path, 4);
  await Promise.all([2, 0].map((index) => first.ledger.append(index, result(index))));
  await first.ledger.close();
  t.same(readdirSync(join(path, '..')), ['results.jsonl'], 'no lock and no draft is left');
  const { ledger, earlier } = await open(path, 4);
  t.same(earlier.sort(), ['j', 'j#2']);
  t.same(
    [0, 1, 2, 3].map((index) => ledger.isDone(index)),
    [true, false, true, false],
  );
  await ledger.append(1, result(1));
  await ledger.close();
  t.same(
    keys(path),
    ['j#2', 'j', 'j#1'].sort((a, b) => keys(path).indexOf(a) - keys(path).indexOf(b)),
  );
});

t.test('the beginning of a line that a killed run left is cut off', async (t) => {
  const path = place(t);
  writeFileSync(path, line(0) + line(1).slice(0, 30));
  const { ledger, earlier } = await open(path, 3);
  t.same(earlier, ['j']);
  await ledger.append(1, result(1));
  await ledger.close();
  t.equal(readFileSync(path, 'utf8'), line(0) + line(1));
});

t.test('a second runner is refused while the first lives, and takes over from a dead one', async (t) => {
  const path = place(t);
  const { ledger } = await open(path, 1);
  await t.rejects(open(path, 1), { code: 'CONFIG_INVALID', message: new RegExp(`process id ${process.pid}`) });
  await ledger.close();
  writeFileSync(`${path}.lock`, JSON.stringify({ ...identifySelf(), processStart: '1' }));
  const takers = await Promise.allSettled([1, 2, 3, 4].map(() => open(path, 1)));
  const winners = takers.filter((one) => one.status === 'fulfilled');
  t.equal(winners.length, 1, 'of several one gets it');
  await winners[0]!.value.ledger.close();
  t.notOk(existsSync(`${path}.lock`));
});

t.test('a file that is no results file is refused and left as it is', async (t) => {
  const path = place(t);
  for (const content of ['hello\n', line(0) + 'null\n', '{"version":2}\n', line(1) + line(0) + line(1)]) {
    writeFileSync(path, content);
    await t.rejects(open(path, 3), { code: 'CONFIG_INVALID' });
    t.equal(readFileSync(path, 'utf8'), content);
    t.notOk(existsSync(`${path}.lock`), 'the lock is let go');
  }
});

t.test('results of jobs that have changed are refused by name, unless forced; results of unknown jobs are left', async (t) => {
  const path = place(t);
  writeFileSync(path, line(0) + line(1) + line(0, { key: 'gone' }));
  await t.rejects(open(path, 2, { attempts: attempts(2, 'other') }), { code: 'CONFIG_INVALID', message: /"j", "j#1" has changed/ });
  const { ledger, earlier } = await open(path, 2, { attempts: attempts(2, 'other'), force: true });
  t.same([earlier.length, ledger.strangers], [2, 1]);
  await ledger.close();
  t.same(keys(path), ['j', 'j#1', 'gone']);
});

t.test('with retryErrors the lines of errors go, before anything runs', async (t) => {
  const path = place(t);
  writeFileSync(path, line(0, { status: 'error' }) + line(1, { status: 'failed' }) + line(2, { status: 'error' }));
  const { ledger, earlier } = await open(path, 3, { retryErrors: true });
  t.same(earlier, ['j#1']);
  t.same(keys(path), ['j#1']);
  await ledger.append(2, result(2));
  await ledger.close();
  t.same(keys(path), ['j#1', 'j#2']);
});

t.test('an ordered file is in order at every moment; what came early waits beside it and survives a kill', async (t) => {
  const path = place(t);
  const { ledger } = await open(path, 6, { ordered: true });
  for (const index of [3, 1, 0, 4]) {
    await ledger.append(index, result(index));
    const there = keys(path);
    t.same(there, ['j', 'j#1', 'j#2', 'j#3', 'j#4'].slice(0, there.length));
  }
  t.same(keys(path), ['j', 'j#1']);
  t.same(keys(`${path}.waiting`).sort(), ['j#1', 'j#3', 'j#4']);
  // What a kill at this moment would leave.
  const left = place(t);
  copyFileSync(path, left);
  copyFileSync(`${path}.waiting`, `${left}.waiting`);
  await ledger.close();
  const second = await open(left, 6, { ordered: true });
  t.same(second.earlier.sort(), ['j', 'j#1', 'j#3', 'j#4']);
  await second.ledger.append(2, result(2));
  t.same(keys(left), ['j', 'j#1', 'j#2', 'j#3', 'j#4']);
  await second.ledger.append(5, result(5));
  await second.ledger.close();
  t.same(keys(left), ['j', 'j#1', 'j#2', 'j#3', 'j#4', 'j#5']);
  t.notOk(existsSync(`${left}.waiting`));
});

t.test('an ordered run that stops early gives out what it has; going on puts it in order again', async (t) => {
  const path = place(t);
  const first = await open(path, 4, { ordered: true });
  await first.ledger.append(3, result(3));
  await first.ledger.append(1, result(1));
  await first.ledger.close();
  t.same(keys(path), ['j#1', 'j#3']);
  const second = await open(path, 4, { ordered: true });
  t.same(keys(path), []);
  await second.ledger.append(0, result(0));
  t.same(keys(path), ['j', 'j#1']);
  await second.ledger.append(2, result(2));
  await second.ledger.close();
  t.same(keys(path), ['j', 'j#1', 'j#2', 'j#3']);
});

t.test('what waits of an ordered run is taken in by one that is not', async (t) => {
  const path = place(t);
  writeFileSync(path, line(0));
  writeFileSync(`${path}.waiting`, line(2) + line(0) + line(1).slice(0, 9));
  const { ledger, earlier } = await open(path, 3);
  t.same(earlier, ['j', 'j#2']);
  await ledger.close();
  t.same(keys(path), ['j', 'j#2']);
  t.notOk(existsSync(`${path}.waiting`));
});

t.test('in whatever order results come, each is there once, in order', async (t) => {
  const count = 12;
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([...Array(count).keys()], { minLength: 1 }),
      fc.integer({ min: 1, max: 4 }),
      async (order, width) => {
        const path = place(t);
        const { ledger } = await open(path, count, { ordered: true });
        for (let at = 0; at < order.length; at += width) {
          await Promise.all(order.slice(at, at + width).map((index) => ledger.append(index, result(index))));
        }
        await ledger.close();
        t.same(
          keys(path),
          [...order].sort((a, b) => a - b).map((index) => result(index).key),
        );
      },
    ),
    { numRuns: 15 },
  );
});
