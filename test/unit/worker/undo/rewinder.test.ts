/** Undoing, redoing and rewinding, over real files and a log in memory. */
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { outcomeText } from '../../../../src/worker/undo/outcome-text.ts';
import { UndoRig } from './undo-rig.ts';

t.test('undo takes back what a prompt changed, and what was said; redo brings both back', async (t) => {
  const rig = UndoRig.in(t);
  rig.put('a.txt', 'one');
  chmodSync(join(rig.cwd, 'a.txt'), 0o751);
  await rig.turn('first', () => rig.write('a.txt', 'two'));
  await rig.turn('second', async () => {
    await rig.edit('a.txt', 'two', 'three');
    await rig.write('new/deep/b.txt', 'made');
  });
  const after = { tree: rig.tree(), said: rig.said() };
  const outcome = await rig.undo();
  t.match(outcome, { kind: 'undo', turns: [2], notUndone: [] });
  t.strictSame(rig.tree(), { 'a.txt': 'two' }, 'the directories that were made for a file went with it');
  t.equal(statSync(join(rig.cwd, 'a.txt')).mode & 0o777, 0o751);
  t.strictSame(rig.said().at(-1), 'assistant: answer to first');
  await rig.undo();
  t.strictSame(rig.tree(), { 'a.txt': 'one' });
  t.strictSame(rig.said(), []);
  t.equal(await rig.undo(), undefined, 'nothing is left');
  t.match(await rig.redo(), { kind: 'redo', turns: [1] });
  t.match(await rig.redo(), { kind: 'redo', turns: [2] });
  t.strictSame({ tree: rig.tree(), said: rig.said() }, after);
  t.equal(await rig.redo(), undefined);
  t.match(await rig.undo(5), { turns: [1, 2] }, 'more than there are is all there are');
  t.strictSame(rig.tree(), { 'a.txt': 'one' });
});

t.test('a new prompt goes on from what was undone, and ends what could be redone', async (t) => {
  const rig = UndoRig.in(t);
  await rig.turn('first', () => rig.write('a.txt', 'one'));
  await rig.turn('second', () => rig.write('a.txt', 'two'));
  await rig.undo();
  const turn = await rig.turn('third', () => rig.write('a.txt', 'three'));
  t.equal(turn, 3, 'a number is not used again');
  t.equal(await rig.redo(), undefined);
  t.match(rig.said().join('\n'), /first[^]*third/);
  t.notMatch(rig.said().join('\n'), /second/);
  t.match(await rig.undo(2), { turns: [1, 3] });
  t.strictSame(rig.tree(), {});
  await rig.redo();
  t.strictSame(rig.tree(), { 'a.txt': 'three' });
});

t.test('a file that has changed since is left and reported; force restores it, and can be taken back', async (t) => {
  const rig = UndoRig.in(t);
  rig.put('a.txt', 'one');
  rig.put('b.txt', 'one');
  await rig.turn('go', async () => {
    await rig.write('a.txt', 'two');
    await rig.write('b.txt', 'two');
    await rig.write('c.txt', 'made');
    await rig.write('d.txt', 'made');
  });
  rig.put('a.txt', 'mine');
  rmSync(join(rig.cwd, 'c.txt'));
  rig.put('d.txt', 'mine too');
  const outcome = await rig.undo();
  t.match(outcome?.files, [
    { path: join(rig.cwd, 'a.txt'), outcome: 'left', why: 'it has changed since', canForce: true },
    { path: join(rig.cwd, 'b.txt'), outcome: 'restored' },
    { path: join(rig.cwd, 'd.txt'), outcome: 'left' },
  ]);
  t.strictSame(rig.tree(), { 'a.txt': 'mine', 'b.txt': 'one', 'd.txt': 'mine too' });
  t.match(outcomeText(outcome!, { cwd: rig.cwd, filesAsked: true }), /left as it is\*\*: `a\.txt`[^]*`\/redo`, then `\/undo --force`/);
  await rig.redo();
  t.strictSame(rig.tree(), { 'a.txt': 'mine', 'b.txt': 'two', 'd.txt': 'mine too' }, 'what was left stays left');
  const forced = await rig.undo(1, { force: true });
  t.notOk(forced?.files.some((file) => file.outcome === 'left'));
  t.strictSame(rig.tree(), { 'a.txt': 'one', 'b.txt': 'one' });
  await rig.redo();
  t.strictSame(rig.tree(), { 'a.txt': 'mine', 'b.txt': 'two', 'd.txt': 'mine too' }, 'what force overwrote is back');
});

t.test('what somebody else changed between two turns is not undone unasked; what a command changed within one is', async (t) => {
  const rig = UndoRig.in(t);
  rig.put('a.txt', 'one');
  await rig.turn('first', async () => {
    await rig.write('a.txt', 'two');
    await rig.command('format a.txt', () => rig.put('a.txt', 'two, formatted'));
    await rig.write('a.txt', 'three');
  });
  t.match(await rig.undo(), { files: [{ outcome: 'restored' }], notUndone: ['format a.txt'] });
  t.equal(rig.read('a.txt'), 'one');
  await rig.redo();
  rig.put('a.txt', 'three and mine');
  await rig.turn('second', () => rig.edit('a.txt', 'three', 'four'));
  t.match(await rig.undo(2), { files: [{ outcome: 'left', why: /somebody else/ }] });
  t.equal(rig.read('a.txt'), 'four and mine');
  await rig.redo();
  await rig.undo(2, { force: true });
  t.equal(rig.read('a.txt'), 'one');
  await rig.redo();
  t.equal(rig.read('a.txt'), 'four and mine');
});

t.test('rewinding goes to before a chosen message, the conversation alone if so asked', async (t) => {
  const rig = UndoRig.in(t);
  for (const name of ['one', 'two', 'three']) await rig.turn(name, () => rig.write('a.txt', name));
  t.match(await rig.rewinder.rewind((timeline) => timeline.turnOf('u2'), rig.options({ files: false })), {
    kind: 'rewind',
    turns: [2, 3],
    files: [],
  });
  t.equal(rig.read('a.txt'), 'three');
  t.notMatch(rig.said().join(), /two/);
  t.equal(await rig.rewinder.rewind((timeline) => timeline.turnOf('u3'), rig.options()), undefined, 'no part of the conversation any more');
  await rig.redo();
  t.match(rig.said().join(), /three/);
  t.match(await rig.rewinder.rewind((timeline) => timeline.turnOf('u1'), rig.options()), { turns: [1, 2, 3] });
  t.strictSame(rig.tree(), {});
});

t.test('an undo that was cut off is completed by doing it again, also by another process, and redo takes all of it back', async (t) => {
  for (const failAt of ['undo/start', 'file/snapshot', 'history/rewound'] as const) {
    const rig = UndoRig.in(t);
    for (const name of ['a', 'b', 'c']) rig.put(name, 'old');
    await rig.turn('go', async () => {
      for (const name of ['a', 'b', 'c']) await rig.write(name, 'new');
    });
    const said = rig.said();
    rig.failAt = failAt;
    await t.rejects(rig.undo(), { code: 'LOG_WRITE_FAILED' }, failAt);
    t.strictSame(rig.said(), said, 'the conversation stands until the log says otherwise');
    await rig.reopen();
    t.match(await rig.undo(), { turns: [1] });
    t.strictSame(rig.tree(), { a: 'old', b: 'old', c: 'old' });
    await rig.reopen();
    await rig.redo();
    t.strictSame(rig.tree(), { a: 'new', b: 'new', c: 'new' }, failAt);
    t.strictSame(rig.said(), said);
  }
});

t.test('a cancel between two files leaves an undo that can be completed', async (t) => {
  const rig = UndoRig.in(t);
  for (const name of ['a', 'b']) rig.put(name, 'old');
  await rig.turn('go', async () => {
    for (const name of ['a', 'b']) await rig.write(name, 'new');
  });
  const stop = new AbortController();
  rig.verdict = (path) => {
    if (path.endsWith('a')) setImmediate(() => stop.abort());
    return { kind: 'allow' };
  };
  await t.rejects(rig.undo(1, { signal: stop.signal }));
  t.equal(rig.said().length, 6);
  await rig.undo();
  t.strictSame(rig.tree(), { a: 'old', b: 'old' });
  await rig.redo();
  t.strictSame(rig.tree(), { a: 'new', b: 'new' });
});

t.test('a crash between the snapshot and the change leaves a file in either state, and both are undone', async (t) => {
  for (const happened of [true, false]) {
    const rig = UndoRig.in(t);
    rig.put('a', 'old');
    await rig.turn('go', () => rig.write('a', 'new'));
    // The result never reached the log; repair wrote what it knows.
    const index = rig.events.findIndex(({ type }) => type === 'tool/result');
    const result = rig.events[index]!;
    rig.events[index] = { ...result, data: { ...result.data, isError: true, code: 'TOOL_OUTCOME_UNKNOWN' } } as never;
    if (!happened) rig.put('a', 'old');
    await rig.reopen();
    t.match(await rig.undo(), { files: happened ? [{ outcome: 'restored' }] : [] });
    t.equal(rig.read('a'), 'old');
    await rig.redo();
    t.equal(rig.read('a'), happened ? 'new' : 'old');
  }
});

t.test('a change that failed is no change', async (t) => {
  const rig = UndoRig.in(t);
  rig.put('a', 'old');
  await rig.turn('go', async () => {
    rig.store.keep = async (): Promise<undefined> => {
      rig.put('a', 'changed by somebody in that very moment');
    };
    const outcome = await rig.write('a', 'new');
    t.match(outcome, { isError: true, code: 'FS_STALE' });
  });
  t.match(await rig.undo(), { files: [], notUndone: [] });
});

t.test('a link or a directory in the place of a file is not followed', async (t) => {
  const rig = UndoRig.in(t);
  mkdirSync(join(rig.cwd, 'd'));
  for (const name of ['a', 'b', 'd/c']) rig.put(name, 'old');
  await rig.turn('go', async () => {
    for (const name of ['a', 'b', 'd/c', 'e']) await rig.write(name, 'new');
  });
  const outside = join(rig.cwd, '../outside');
  const secret = join(outside, 'c');
  rig.put('../outside/c', 'new');
  rmSync(join(rig.cwd, 'a'));
  symlinkSync(secret, join(rig.cwd, 'a'));
  renameSync(join(rig.cwd, 'd'), join(rig.cwd, 'was-d'));
  symlinkSync(outside, join(rig.cwd, 'd'));
  rmSync(join(rig.cwd, 'b'));
  mkdirSync(join(rig.cwd, 'b'));
  for (const force of [false, true]) {
    const outcome = await rig.undo(1, { force });
    t.match(
      outcome?.files.map(({ path, outcome, why }) => [path.slice(rig.cwd.length + 1), outcome, why ?? '']),
      [
        ['a', 'left', /link/],
        ['b', 'left', /directory/],
        ['d/c', 'left', /link/],
        ['e', 'removed', ''],
      ],
    );
    t.equal(rig.read('../outside/c'), 'new');
    await rig.redo();
  }
});

t.test('what may not be written now is left: what needs a question unless forced, what is forbidden always', async (t) => {
  const rig = UndoRig.in(t);
  for (const name of ['asked', 'denied', 'free']) rig.put(name, 'old');
  await rig.turn('go', async () => {
    for (const name of ['asked', 'denied', 'free']) await rig.write(name, 'new');
  });
  rig.verdict = (path) =>
    path.endsWith('/asked')
      ? { kind: 'ask', why: 'outside' }
      : path.endsWith('/denied')
        ? { kind: 'deny', why: 'a rule' }
        : { kind: 'allow' };
  await rig.undo();
  t.strictSame(rig.tree(), { asked: 'new', denied: 'new', free: 'old' });
  await rig.redo();
  await rig.undo(1, { force: true });
  t.strictSame(rig.tree(), { asked: 'old', denied: 'new', free: 'old' });
  await rig.redo();
  rig.refusal = 'This session is read-only.';
  const events = rig.events.length;
  await t.rejects(rig.undo(), { code: 'INVALID_PARAMS' });
  t.equal(rig.events.length, events, 'nothing was begun');
  t.match(await rig.undo(1, { files: false }), { turns: [1] });
});

t.test('content beyond the limits is changed all the same, and said to be lost to an undo', async (t) => {
  const rig = UndoRig.in(t, { fileBytes: 100, sessionBytes: 150 });
  for (const [name, size] of [
    ['large', 101],
    ['first', 80],
    ['second', 80],
    ['same', 80],
  ] as const) {
    rig.put(name, name === 'same' ? 'f'.repeat(size) : (name[0] ?? '').repeat(size));
  }
  await rig.turn('go', async () => {
    for (const name of ['large', 'first', 'second', 'same']) t.notOk((await rig.write(name, 'new')).isError);
  });
  t.strictSame(
    rig.events.flatMap((event) => (event.type === 'file/snapshot' ? [event.data.notKept ?? 'kept'] : [])),
    ['file-too-large', 'kept', 'session-full', 'kept'],
    'one content is kept once',
  );
  t.match(await rig.undo(), {
    files: [{ outcome: 'left', why: /too large/ }, { outcome: 'restored' }, { outcome: 'left', why: /room/ }, { outcome: 'restored' }],
  });
  t.equal(rig.read('first'), 'f'.repeat(80));
});

t.test('kept content that is damaged or gone is not put into a file', async (t) => {
  const rig = UndoRig.in(t);
  for (const name of ['a', 'b']) rig.put(name, `old ${name}`);
  await rig.turn('go', async () => {
    for (const name of ['a', 'b']) await rig.write(name, 'new');
  });
  const directory = join(rig.stateDir, 'session.d/snapshots');
  const [one, two] = readdirSync(directory);
  t.equal(statSync(join(directory, one!)).mode & 0o777, 0o600);
  t.equal(statSync(directory).mode & 0o777, 0o700);
  truncateSync(join(directory, one!), 2);
  rmSync(join(directory, two!));
  t.match(await rig.undo(), {
    files: [
      { outcome: 'left', why: /gone or damaged/ },
      { outcome: 'left', why: /gone or damaged/ },
    ],
  });
  t.strictSame(rig.tree(), { a: 'new', b: 'new' });
});

t.test('without snapshots the conversation alone is undone, and the files are named', async (t) => {
  const rig = UndoRig.in(t);
  rig.keeps = false;
  await rig.turn('go', async () => {
    await rig.write('a', 'new');
    await rig.command('make all');
    await rig.write('b', 'x'.repeat(100_000));
    await rig.edit('a', 'not there', 'x');
  });
  const outcome = await rig.undo();
  t.match(outcome, { files: [], notUndone: [`write ${join(rig.cwd, 'a')}`, 'make all', 'write'] });
  t.equal(outcome?.notUndone.length, 3, 'a call that failed changed nothing');
  t.ok(existsSync(join(rig.cwd, 'a')));
  t.match(outcomeText(outcome!, { cwd: rig.cwd, filesAsked: true }), /No file had to be changed[^]*as they left it: `write /);
});

t.test('the plan that is shown goes back with the conversation', async (t) => {
  const rig = UndoRig.in(t);
  const plan = (content: string) => async () => rig.record({ type: 'todo/write', data: { todos: [{ content, status: 'pending' }] } });
  await rig.turn('first', plan('one'));
  await rig.turn('second', plan('two'));
  const last = () => rig.events.findLast((event) => event.type === 'todo/write')?.data;
  await rig.undo();
  t.match(last(), { todos: [{ content: 'one' }] });
  await rig.undo();
  t.strictSame(last(), { todos: [] });
  await rig.redo();
  await rig.redo();
  t.match(last(), { todos: [{ content: 'two' }] });
  const count = rig.events.length;
  await rig.turn('third');
  await rig.undo();
  t.notOk(
    rig.events.slice(count).some(({ type }) => type === 'todo/write'),
    'not where it stays the same',
  );
});

t.test('a summary that was asked for is no prompt: it goes with the one before it', async (t) => {
  const rig = UndoRig.in(t);
  await rig.turn('first');
  const said = rig.said();
  await rig.turn('second');
  await rig.summarize();
  t.equal(rig.said().length, 1);
  t.match(await rig.undo(), { turns: [2] });
  t.strictSame(rig.said(), said, 'what was summarized is whole again');
  await rig.redo();
  t.equal(rig.said().length, 1);
  t.match(await rig.undo(2), { turns: [1, 2] });
  await rig.redo();
  await rig.reopen();
  t.equal(rig.said().length, 1);
});

t.test('two undos at once: the second is refused', async (t) => {
  const rig = UndoRig.in(t);
  await rig.turn('go');
  const first = rig.undo();
  await t.rejects(rig.undo(), { code: 'SESSION_BUSY' });
  t.match(await first, { turns: [1] });
});
