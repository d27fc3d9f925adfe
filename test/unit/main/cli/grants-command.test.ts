/** `dsh-acp grants`: what is listed, and that what is taken back is gone for whoever reads the file. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { runGrants } from '../../../../src/main/cli/grants-command.ts';
import { parseCommandLine } from '../../../../src/main/cli/parse-command-line.ts';
import { appendGrant, grantsDir, grantsPath, readGrants } from '../../../../src/shared/permission/grants-file.ts';

async function places(t: Test) {
  // Not in the test's own folder, whose name may be longer than what a line shows.
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-grants-')));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  for (const name of ['state', 'one', 'two']) mkdirSync(join(root, name));
  const state = join(root, 'state');
  const keep = async (workspace: string, answer: 'allow' | 'reject', command: string): Promise<void> => {
    const key = JSON.stringify(['execute', workspace, command]);
    await appendGrant(grantsPath(state, workspace), { workspace, answer, words: '', key, at: '2026-11-30T12:34:56.000Z' });
  };
  return { state, one: join(root, 'one'), two: join(root, 'two'), keep };
}

/** The id that stands before these words. */
const idBefore = (listed: string, words: string): string =>
  /^ {2}([0-9a-f]{10})/.exec(listed.split('\n').find((line) => line.includes(words)) ?? '')?.[1] ?? '';

t.test('lists what is kept, by workspace, on lines that a screen can show', async (t) => {
  const { state, one, two, keep } = await places(t);
  t.equal(await runGrants(state, []), 'No lasting answers are kept.\n');
  await keep(two, 'reject', 'git push');
  await keep(one, 'allow', 'npm test');
  await keep(one, 'allow', 'printf "\u001b[31m\nred"');
  const listed = await runGrants(state, ['list']);
  t.equal(await runGrants(state, []), listed);
  const lines = listed.split('\n');
  t.same([lines[0], lines[4]], [one, two]);
  t.match(lines[1], `always allow   2026-11-30 12:34  while contained: the command "npm test" in ${one}`);
  t.match(lines[5], /always reject {2}2026-11-30 12:34 {2}the command "git push"/);
  // oxlint-disable-next-line no-control-regex -- control characters are what must not come through
  t.notMatch(listed, /[\u0000-\u0009\u000b-\u001f]/);
  t.equal(await runGrants(state, ['list', two]), lines.slice(4).join('\n'));
  t.equal(await runGrants(state, ['list', state]), 'No lasting answers are kept.\n');
});

t.test('takes one back by its id, and all of a workspace by its directory, by whatever name', async (t) => {
  const { state, one, two, keep } = await places(t);
  await keep(one, 'allow', 'npm test');
  await keep(one, 'reject', 'git push');
  await keep(two, 'allow', 'ls');
  const id = idBefore(await runGrants(state, []), 'npm test');
  t.match(await runGrants(state, ['remove', id]), /^Taken back: while contained: the command "npm test" in \//);
  t.same(
    [...readGrants(grantsPath(state, one)).entries.values()].map(({ answer }) => answer),
    ['reject'],
  );
  await t.rejects(runGrants(state, ['remove', id]), { code: 'INVALID_PARAMS', message: /no lasting answer/ });
  symlinkSync(one, join(two, 'link'));
  t.equal(await runGrants(state, ['clear', join(two, 'link')]), `Taken back: 1 lasting answer about ${one}\n`);
  t.notOk(existsSync(grantsPath(state, one)));
  t.match(await runGrants(state, []), /^\/.*two\n.*"ls"/);
  t.equal(await runGrants(state, ['clear', one]), `Taken back: 0 lasting answers about ${one}\n`);
});

t.test('a file in doubt is shown with what is wrong with it and how to get rid of it', async (t) => {
  const { state, one, keep } = await places(t);
  await keep(one, 'allow', 'ls');
  writeFileSync(grantsPath(state, one), 'garbage\n', { flag: 'a' });
  const listed = await runGrants(state, []);
  t.match(listed, /! line 2 is not understood: nothing is allowed by this file until it is gone \(dsh-acp grants clear /);
  t.match(await runGrants(state, ['remove', idBefore(listed, '"ls"')]), /^Taken back/);
  t.match(await runGrants(state, ['clear', one]), /^Taken back: 0/);
  t.notOk(existsSync(grantsPath(state, one)));
  mkdirSync(grantsDir(state), { recursive: true });
  writeFileSync(join(grantsDir(state), 'odd.jsonl'), 'x', { mode: 0o600 });
  t.match(await runGrants(state, []), /odd\.jsonl\n {2}! line 1 .*\(remove \//);
});

t.test('other words are refused by name', async (t) => {
  const { state } = await places(t);
  for (const words of [['drop'], ['remove'], ['clear'], ['list', 'a', 'b'], ['remove', 'a', 'b']]) {
    await t.rejects(runGrants(state, words), { code: 'CONFIG_INVALID' }, words.join(' '));
  }
  await t.rejects(runGrants(state, ['remove', '\u001b[1m']), { message: /‹ESC›/ });
  t.match(parseCommandLine(['grants', 'clear', '/x', '--state-dir', '/s']), { command: 'grants', words: ['clear', '/x'] });
  t.same(parseCommandLine(['doctor']).words, []);
});
