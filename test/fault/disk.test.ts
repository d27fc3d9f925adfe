/** The log's disk: torn tails, no space, a directory that is gone, two servers that want one session. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { sealLine } from '../../src/shared/log/line-seal.ts';
import { sessionsDir } from '../../src/shared/log/session-paths.ts';
import { ClientScreen } from '../support/client-screen.ts';
import { faultTest, logPath, readEvents } from '../support/invariants.ts';
import { saboteurMain } from '../support/saboteur-program.ts';

t.setTimeout(100_000);

const scripted = ['--model', 'scripted', '--permission-mode', 'full-access'];

/** A log with a word of its header changed, such as the session's name: the header is sealed by a checksum. */
function renamed(log: Buffer, from: string, to: string): Buffer {
  const end = log.indexOf(10);
  const { crc: _crc, ...header } = JSON.parse(log.toString('utf8', 0, end)) as Record<string, unknown>;
  return Buffer.concat([sealLine(JSON.stringify(header).replace(from, to)), log.subarray(end + 1)]);
}

void faultTest('fault 16: a log cut off at any byte of its last turn loads, and the session goes on', async (t, rig) => {
  const first = await rig.serve({ args: scripted });
  const session = await first.newSession(rig.dir);
  await first.prompt(session, 'say one');
  const before = readFileSync(logPath(first, session)).length;
  await first.prompt(session, 'todo x done; *doing\nsay two');
  await first.close();
  const whole = readFileSync(logPath(first, session));
  // One server loads a copy for each of many places; every byte of one line, then steps through the rest.
  const cuts = Array.from(
    { length: 150 },
    (_, index) => before + (index < 60 ? index : 60 + Math.floor(((whole.length - before - 60) * (index - 60)) / 90)),
  );
  const stateDir = join(rig.dir, 'cut');
  mkdirSync(sessionsDir(stateDir), { recursive: true, mode: 0o700 });
  const ids = cuts.map((cut, index) => {
    const id = `${session.slice(0, -12)}${index.toString(16).padStart(12, '0')}`;
    // The header names the session, sealed by a checksum: a copy under another name needs a header of its own.
    writeFileSync(join(sessionsDir(stateDir), `${id}.jsonl`), renamed(whole.subarray(0, cut), session, id), { mode: 0o600 });
    return id;
  });
  // Two threads: a hundred that start at once would only measure how busy the machine is.
  const second = await rig.serve({ args: [...scripted, '--isolation', 'shared'], stateDir });
  const loads = await Promise.all(ids.map((sessionId) => second.request('session/load', { sessionId, cwd: rig.dir, mcpServers: [] })));
  t.same(
    loads.filter((load) => load.error !== undefined).map((load) => load.error),
    [],
  );
  const wrong = ids.filter((id) => !second.text(id).includes('one'));
  t.same(wrong, [], 'the first turn is whole in each');
  for (const id of [ids[1], ids[70], ids[149]]) t.match(await second.prompt(String(id), 'say on'), { result: { stopReason: 'end_turn' } });
});

void faultTest(
  'fault 17, 25: a log that is damaged inside, or of a later version, is refused by name and left as it is',
  async (t, rig) => {
    const first = await rig.serve({ args: scripted });
    const session = await first.newSession(rig.dir);
    await first.prompt(session, 'repeat 30 word');
    await first.close();
    const path = logPath(first, session);
    const whole = readFileSync(path);
    const damaged = Buffer.from(whole);
    const at = whole.indexOf('user/message') + 2;
    damaged[at] = damaged[at]! ^ 1;
    const line = whole.subarray(0, at).toString('utf8').split('\n').length;
    const file = `${session}.jsonl`;
    writeFileSync(path, damaged);
    const second = await rig.serve({ args: scripted });
    const load = { sessionId: session, cwd: rig.dir, mcpServers: [] };
    const { error } = await second.request('session/load', load);
    t.match(error, { code: -32603, data: { code: 'LOG_CORRUPT', file, line } }, 'for programs');
    t.ok(error?.message.includes(`${file}, line ${line}:`), `for people: ${error?.message}`);
    t.same(readFileSync(path), damaged);
    const later = renamed(whole, '"version":1', '"version":2');
    writeFileSync(path, later);
    const refused = (await second.request('session/load', load)).error;
    t.match(refused, { code: -32603, data: { code: 'LOG_VERSION', version: 2, supported: 1 } });
    t.ok(refused?.message.includes(`${file} has version 2`), String(refused?.message));
    t.same(readFileSync(path), later);
    writeFileSync(path, whole);
    t.ok((await second.request('session/load', load)).result, 'once restored, it loads');
  },
);

void faultTest('fault 18: no space ends the turn before a further tool, and the session goes on once there is space', async (t, rig) => {
  const command = ['bash', '-c', 'ulimit -S -f 64; exec "$0" "$@"', process.execPath, saboteurMain];
  const server = await rig.serve({ args: [...scripted, '--pace-ms', '0'], command });
  const session = await server.newSession(rig.dir);
  const answer = await server.prompt(session, `repeat 20000 some-longer-word-to-fill-it\nrun touch ${join(rig.dir, 'ran')}`);
  t.match(answer.error, { code: -32603, data: { code: 'LOG_WRITE_FAILED' } });
  t.throws(() => readFileSync(join(rig.dir, 'ran')), 'the tool behind it did not run');
  const other = await server.newSession(rig.dir);
  t.match((await server.prompt(other, 'run seq 1 100000')).error, { data: { code: 'LOG_WRITE_FAILED' } }, 'a result finds no room');
  const screen = new ClientScreen().takeAll(server.updates(other));
  t.match(
    [...screen.cards.values()],
    [{ status: 'failed', statuses: ['pending', 'in_progress', 'failed'] }],
    'its card is closed all the same',
  );
  execFileSync('prlimit', ['--pid', String(server.pid), '--fsize=unlimited']);
  t.match(await server.prompt(session, 'run echo space-$((40+2))'), { result: { stopReason: 'end_turn' } });
  t.match(JSON.stringify(server.updates(session)), /space-42/);
});

void faultTest('fault 18: a session that cannot be opened for want of space is free for a server that has some', async (t, rig) => {
  const first = await rig.serve({ args: [...scripted, '--pace-ms', '0'] });
  const session = await first.newSession(rig.dir);
  t.match(await first.prompt(session, 'repeat 5000 word'), { result: { stopReason: 'end_turn' } });
  await first.close();
  const command = ['bash', '-c', 'ulimit -S -f 16; exec "$0" "$@"', process.execPath, saboteurMain];
  const [full, other] = [await rig.serve({ args: scripted, command }), await rig.serve({ args: scripted })];
  const load = { sessionId: session, cwd: rig.dir, mcpServers: [] };
  t.match((await full.request('session/load', load)).error, { data: { code: 'LOG_WRITE_FAILED' } });
  t.match((await full.prompt(session, 'say no')).error, { data: { code: 'SESSION_NOT_FOUND' } });
  t.ok((await other.request('session/load', load)).result);
});

void faultTest('fault 21: a log directory that is removed under a session is reported and not made anew elsewhere', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  const session = await server.newSession(rig.dir);
  t.match(await server.prompt(session, 'say one'), { result: { stopReason: 'end_turn' } });
  const dir = sessionsDir(server.stateDir);
  renameSync(dir, `${dir}-gone`);
  const answer = await server.prompt(session, `run touch ${join(rig.dir, 'ran')}`);
  t.match(answer.error, { data: { code: 'LOG_WRITE_FAILED' } });
  t.throws(() => readFileSync(join(rig.dir, 'ran')));
  renameSync(`${dir}-gone`, dir);
  t.match(await server.prompt(session, 'say back'), { result: { stopReason: 'end_turn' } });
});

void faultTest(
  'fault 22, 50: two servers want one session: the second is refused, and gets it once the first has closed it; of two at once one gets it',
  async (t, rig) => {
    const [first, second] = [await rig.serve({ args: scripted }), await rig.serve({ args: scripted })];
    const session = await first.newSession(rig.dir);
    const load = { sessionId: session, cwd: rig.dir, mcpServers: [] };
    await first.prompt(session, 'say one');
    t.match((await second.request('session/load', load)).error, { code: -31006, data: { code: 'SESSION_LOCKED' } });
    t.match(await first.prompt(session, 'say two'), { result: { stopReason: 'end_turn' } });
    t.same((await first.request('session/close', { sessionId: session })).result, {});
    t.ok((await second.request('session/load', load)).result);
    t.match((await first.request('session/load', load)).error, { data: { code: 'SESSION_LOCKED' } });
    t.match(await second.prompt(session, 'say three'), { result: { stopReason: 'end_turn' } });
    await second.close();
    t.ok((await first.request('session/load', load)).result, 'and back');
    // One id from two servers at once, twice from each: one server owns it, whichever.
    const third = await rig.serve({ args: scripted });
    t.same((await first.request('session/close', { sessionId: session })).result, {});
    const servers = [first, third];
    const loads = await Promise.all(
      servers.flatMap((server) => [0, 1].map(async () => ({ server, ...(await server.request('session/load', load)) }))),
    );
    const owners = servers.filter((server) => loads.some((one) => one.server === server && one.result !== undefined));
    t.equal(owners.length, 1, 'one owner');
    const [owner, loser] = owners[0] === first ? [first, third] : [third, first];
    for (const { error } of loads.filter((one) => one.server === loser))
      t.match(error, { data: { code: /^SESSION_(LOCKED|ALREADY_OPEN)$/ } });
    t.match((await loser.prompt(session, 'say stolen')).error, { data: { code: 'SESSION_NOT_FOUND' } });
    // A load of a live id, and two of them: still one thread that answers.
    await Promise.all([owner.request('session/load', load), owner.request('session/load', load)]);
    const seen = owner.updates(session).length;
    t.match(await owner.prompt(session, 'say sole-owner'), { result: { stopReason: 'end_turn' } });
    const said = owner
      .updates(session)
      .slice(seen)
      .filter((update) => update.sessionUpdate === 'agent_message_chunk');
    t.equal(
      said
        .map((update) => update.content.text)
        .join('')
        .match(/sole-owner/g)?.length,
      1,
      'said once',
    );
    await owner.close();
    t.equal(
      (await readEvents(logPath(owner, session))).filter((event) => event.type === 'turn/start').length,
      4,
      'one turn for each prompt',
    );
  },
);

void faultTest('fault 23: a server that was stopped while another took the session over writes nothing more', async (t, rig) => {
  const first = await rig.serve({ args: scripted });
  first.leavesOpenTurn = true;
  const session = await first.newSession(rig.dir);
  const prompt = first.startPrompt(session, 'repeat 4000 word');
  await first.nextUpdate(session);
  await delay(400);
  // As if the machine of the first had been taken for dead: its lock is judged stale by a name that cannot run.
  first.child.kill('SIGSTOP');
  const lock = join(sessionsDir(first.stateDir), `${session}.lock`);
  writeFileSync(`${lock}.new`, readFileSync(lock, 'utf8').replace(/"bootId":"[^"]*"/, '"bootId":"another"'));
  renameSync(`${lock}.new`, lock);
  const second = await rig.serve({ args: scripted });
  t.ok((await second.request('session/load', { sessionId: session, cwd: rig.dir, mcpServers: [] })).result);
  t.match(await second.prompt(session, 'say mine'), { result: { stopReason: 'end_turn' } });
  await second.close();
  const taken = readFileSync(logPath(second, session));
  first.child.kill('SIGCONT');
  t.match((await first.response(prompt)).error, { data: { code: 'LOG_WRITE_FAILED' } });
  await first.close();
  t.same(readFileSync(logPath(second, session)), taken, 'not a byte of the first has come since');
});

void faultTest('fault 27: a symbolic link in the place of a log is refused', async (t, rig) => {
  const server = await rig.serve({ args: scripted });
  const session = await server.newSession(rig.dir);
  t.same((await server.request('session/close', { sessionId: session })).result, {});
  const path = logPath(server, session);
  const aside = join(rig.dir, `${session}.jsonl`);
  copyFileSync(path, aside);
  rmSync(path);
  execFileSync('ln', ['-s', aside, path]);
  t.ok((await server.request('session/load', { sessionId: session, cwd: rig.dir, mcpServers: [] })).error);
  rmSync(path);
});
