/** The log under the disk's faults and under time: failed writes, versions to come, lengths without end, a clock that jumps. */
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { sealLine } from '../../src/shared/log/line-seal.ts';
import { createSessionFile } from '../../src/shared/log/session-paths.ts';
import { readLog } from '../../src/worker/log/log-reader.ts';
import { growLog } from '../support/large-log.ts';
import { faultTest, logPath, partTest } from '../support/invariants.ts';
import { makeLog, openLog } from '../unit/worker/log/open-log.ts';
import { sample, sampleHeader, wholeTurn } from '../unit/shared/log/sample-events.ts';

t.setTimeout(60_000);

for (const code of ['EIO', 'EROFS', 'EDQUOT', 'ENOSPC']) {
  void partTest(`fault 19: after ${code} on the way to the disk nothing counts as durable until the log is opened again`, async (t) => {
    const { paths, written } = await makeLog(t.testdir(), wholeTurn);
    let isBroken = false;
    const sync = async (): Promise<void> => {
      if (isBroken) throw Object.assign(new Error(code), { code });
    };
    const { log } = await openLog(paths, { sync });
    log.append(sample('mode/change'));
    isBroken = true;
    await t.rejects(log.barrier(), { code: 'LOG_WRITE_FAILED' });
    isBroken = false;
    t.throws(() => log.append(sample('mode/change')), { code: 'LOG_WRITE_FAILED' }, 'a later sync proves nothing');
    await t.rejects(log.close(), { code: 'LOG_WRITE_FAILED' });
    const again = await openLog(paths);
    await again.log.close();
    t.same(again.events.slice(0, written.length), written, 'what was durable before is there');
  });
}

for (const [act, why] of [
  ['eio', 'EIO'],
  ['full', 'ENOSPC'],
] as const) {
  void faultTest(`fault 18, 19: an append that ends with ${why} in the midst of a turn ends it before any further tool`, async (t, rig) => {
    const server = await rig.serve({ args: ['--model', 'scripted', '--permission-mode', 'full-access', '--titles', 'off'] });
    server.leavesOpenTurn = true;
    const session = await server.newSession(rig.dir);
    t.match(await server.prompt(session, 'say before'), { result: { stopReason: 'end_turn' } });
    // The first command waits until the log's descriptor leads elsewhere, so that its own result is the first to be refused.
    const wait = 'touch go; for i in $(seq 200); do [ -e replaced ] && break; sleep 0.02; done';
    const answer = await server.prompt(session, `[!${act} on go]\nrun ${wait}\nrun touch ran`);
    t.match(answer.error, { code: -32603, data: { code: 'LOG_WRITE_FAILED' } });
    // Where a look at the file comes first, it is that which finds another one.
    t.match(answer.error?.message, new RegExp(`${why}|changed by another program`));
    t.ok(existsSync(join(rig.dir, 'replaced')), 'it was injected');
    t.notOk(existsSync(join(rig.dir, 'ran')), 'the tool behind it did not run');
    t.match((await server.prompt(session, 'say no')).error, { data: { code: 'LOG_WRITE_FAILED' } }, 'as long as the disk refuses');
    t.same((await server.request('session/close', { sessionId: session })).result, {});
    t.ok((await server.request('session/load', { sessionId: session, cwd: rig.dir, mcpServers: [] })).result);
    t.match(await server.prompt(session, 'say after'), { result: { stopReason: 'end_turn' } }, 'the session is opened anew');
    t.match(server.text(session), /before[^]*after/);
  });
}

void faultTest('fault 20: a write that the disk takes only in part leaves no half line', async (t, rig) => {
  const command = ['bash', '-c', 'ulimit -S -f 8; exec "$0" "$@"', process.execPath, join(process.cwd(), 'dist/main/cli.js')];
  const args = ['--model', 'scripted', '--permission-mode', 'full-access', '--pace-ms', '0', '--titles', 'off'];
  const server = await rig.serve({ args, command });
  const session = await server.newSession(rig.dir);
  t.match((await server.prompt(session, 'repeat 3000 some-longer-word')).error, { data: { code: 'LOG_WRITE_FAILED' } });
  const bytes = readFileSync(logPath(server, session));
  t.ok(bytes.length <= 8 * 1024 && bytes.at(-1) === 10, `${bytes.length} bytes, whole lines`);
  for (const line of bytes.toString().trimEnd().split('\n')) t.doesNotThrow(() => JSON.parse(line));
  server.leavesOpenTurn = true;
});

void partTest('fault 24: a long log is read in memory that does not grow with it', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const { events, bytes } = growLog(paths, 10 * 1024 * 1024);
  const fd = openSync(paths.log, 'r');
  let [count, peak] = [0, 0];
  const used = (): number => process.memoryUsage().external + process.memoryUsage().arrayBuffers;
  const before = used();
  const { eventCount } = await readLog({ fd, path: paths.log, size: statSync(paths.log).size }, () => {
    count += 1;
    if (count % 1000 === 0) peak = Math.max(peak, used() - before);
  });
  closeSync(fd);
  t.equal(count, events);
  t.equal(eventCount, events);
  t.ok(peak < 6 * 1024 * 1024, `held ${(peak / 1024 / 1024).toFixed(1)} MB of ${(bytes / 1024 / 1024).toFixed(0)}`);
});

void partTest('fault 25: a log of a later version is refused, says so, and is left as it is', async (t) => {
  const { paths } = await makeLog(t.testdir(), wholeTurn);
  const whole = readFileSync(paths.log);
  const later = Buffer.concat([sealLine(JSON.stringify({ ...sampleHeader(), version: 2 })), whole.subarray(whole.indexOf(10) + 1)]);
  writeFileSync(paths.log, later);
  await t.rejects(openLog(paths), { code: 'LOG_VERSION', message: /version/ });
  t.ok(readFileSync(paths.log).equals(later));
});

void partTest('fault 73: a clock that jumps by a day and back changes no order and loses nothing', async (t) => {
  const paths = createSessionFile(t.testdir(), sampleHeader());
  const day = 24 * 3_600_000;
  const times = [0, day, -day, 3_600_000, 0];
  let at = 0;
  const { log } = await openLog(paths, { now: () => 1_800_000_000_000 + times[(at += 1) % times.length]! });
  const written = wholeTurn.map((input) => log.append(input));
  await log.close();
  const again = await openLog(paths);
  await again.log.close();
  t.same(again.events, written);
  t.same(
    again.events.map(({ seq }) => seq),
    written.map((_, seq) => seq),
    'in the order of seq',
  );
  t.same(again.log.report, { torn: undefined, repaired: 0 });
});
