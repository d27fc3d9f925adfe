import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parsePolicy } from '../../../../src/main/config/policy/parse-policy.ts';
import { readPolicyFile } from '../../../../src/main/config/policy/read-policy-file.ts';
import type { PolicyRules } from '../../../../src/shared/policy-rules.ts';
import { parseStoredOptions } from '../../../../src/shared/log/parse-stored-options.ts';
import { projectRoot } from '../../../support/server-process.ts';

const rule = (members: object): object => ({ rule: [{ action: 'allow', ...members }] });

/** The place in the message, and the whole error. */
function fault(value: unknown): { place: string; error: any } {
  try {
    parsePolicy(value, 'here.toml');
    return { place: 'nothing is wrong', error: undefined };
  } catch (error: any) {
    return { place: error.data?.key, error };
  }
}

t.test('a policy is read with its defaults; unnamed rules are numbered', async (t) => {
  t.strictSame(parsePolicy({}, 'x'), { rules: [], fallback: 'deny' });
  const rules = [{ action: 'allow' }, { action: 'deny', name: 'no secrets', paths: ['secrets/**', '~/.x', '/etc/*', '.', './a'] }];
  t.strictSame(parsePolicy({ rule: rules, fallback: 'ask', ask_timeout_ms: 5 }, 'x'), {
    rules: [
      { name: 'rule 1', action: 'allow' },
      { name: 'no secrets', ...rules[1] },
    ],
    fallback: 'ask',
    askTimeoutMs: 5,
  });
});

t.test('what was read is read again the same, and may stand in the header of a log', async (t) => {
  const full: PolicyRules = {
    rules: [
      {
        name: 'all',
        action: 'ask',
        tools: ['bash', 'r*'],
        access: ['execute', 'read'],
        paths: ['**'],
        commands: [['npm', 'run', '*', '...']],
        network: 'none',
      },
      { name: 'helpers', action: 'allow', access: ['delegate'], providers: ['self', 'x-*'] },
      { name: 'rule 3', action: 'deny' },
    ],
    fallback: 'allow',
    askTimeoutMs: 60_000,
  };
  t.strictSame(parsePolicy(full, 'x'), full);
  t.strictSame(parseStoredOptions({ policy: full }), { policy: full });
});

t.test('whatever is not understood is refused with its exact place', async (t) => {
  const cases: [unknown, string][] = [
    [undefined, 'policy'],
    [null, 'policy'],
    ['allow', 'policy'],
    [[], 'policy'],
    [{ ruels: [] }, 'ruels'],
    [{ rule: [], rules: [] }, 'rules'],
    [{ ask_timeout_ms: 1, askTimeoutMs: 1 }, 'askTimeoutMs'],
    [{ fallback: 'Deny' }, 'fallback'],
    [{ ask_timeout_ms: 0 }, 'ask_timeout_ms'],
    [{ ask_timeout_ms: 1.5 }, 'ask_timeout_ms'],
    [{ ask_timeout_ms: '5' }, 'ask_timeout_ms'],
    [{ ask_timeout_ms: 1e12 }, 'ask_timeout_ms'],
    [{ rule: {} }, 'rule'],
    [{ rules: Array.from({ length: 1001 }, () => ({ action: 'allow' })) }, 'rules'],
    [{ rules: ['allow'] }, 'rules[0]'],
    [{ rules: [{}] }, 'rules[0].action'],
    [{ rules: [{ action: 'allow' }, { action: 'permit' }] }, 'rules[1].action'],
    [rule({ command: [['a']] }), 'rule[0].command'],
    [rule({ name: '' }), 'rule[0].name'],
    [rule({ name: 'fallback' }), 'rule[0].name'],
    [rule({ name: 'a\nb' }), 'rule[0].name'],
    [rule({ name: 'x'.repeat(101) }), 'rule[0].name'],
    [{ rules: [{ action: 'allow', name: 'rule 2' }, { action: 'deny' }] }, 'rules[1].name'],
    [rule({ tools: [] }), 'rule[0].tools'],
    [rule({ tools: 'bash' }), 'rule[0].tools'],
    [rule({ tools: ['bash', 7] }), 'rule[0].tools[1]'],
    [rule({ access: [] }), 'rule[0].access'],
    [rule({ access: ['exec'] }), 'rule[0].access[0]'],
    [rule({ paths: [] }), 'rule[0].paths'],
    [rule({ paths: ['ok', ''] }), 'rule[0].paths[1]'],
    [rule({ commands: [] }), 'rule[0].commands'],
    [rule({ commands: [[]] }), 'rule[0].commands[0]'],
    [rule({ commands: ['npm test'] }), 'rule[0].commands[0]'],
    [rule({ commands: [['npm', 1]] }), 'rule[0].commands[0][1]'],
    [rule({ commands: [['...']] }), 'rule[0].commands[0][0]'],
    [rule({ commands: [['npm', '...', 'x']] }), 'rule[0].commands[0][1]'],
    [rule({ commands: [Array.from({ length: 65 }, () => 'x')] }), 'rule[0].commands[0]'],
    [rule({ network: 'off' }), 'rule[0].network'],
    [rule({ providers: [] }), 'rule[0].providers'],
    [rule({ commands: [['x']], access: ['read'] }), 'rule[0].access'],
    [rule({ providers: ['x'], access: ['execute'] }), 'rule[0].access'],
    [rule({ providers: ['x'], commands: [['x']] }), 'rule[0].providers'],
    [rule({ providers: ['x'], paths: ['x'] }), 'rule[0].paths'],
    [rule({ paths: ['x'], access: ['execute', 'none'] }), 'rule[0].paths'],
    [rule({ network: 'none', access: ['write'] }), 'rule[0].access'],
    [rule({ network: 'none', action: 'deny' }), 'rule[0].network'],
  ];
  for (const [value, place] of cases) {
    const found = fault(value);
    t.equal(found.place, place, found.error?.message);
    if (found.error !== undefined)
      t.ok(found.error.code === 'CONFIG_INVALID' && found.error.message.startsWith(`${place}: expected `), place);
  }
});

t.test('a glob that can match nothing is refused', async (t) => {
  const wrong = [
    'a/../b',
    '..',
    './..',
    'a/./b',
    '/',
    '~',
    '~user/x',
    'a//b',
    'docs/',
    '{a',
    '[z-a]',
    'a\0',
    '{a,../b}',
    'a*'.repeat(9),
    'x'.repeat(501),
  ];
  for (const glob of wrong) t.equal(fault(rule({ paths: [glob] })).place, 'rule[0].paths[0]', JSON.stringify(glob));
  const right = ['**', '*.md', 'docs/**', './*.md', '/etc/hosts', '~/x/*', '{a,b}/c', '[!a-c]x', 'a..b', '.env', '.', 'ä ö'];
  for (const glob of right) t.equal(fault(rule({ paths: [glob] })).error, undefined, glob);
});

t.test('a message shows kinds and places, never a value of the policy', async (t) => {
  const secret = 'hunter2-hunter2';
  const places: object[] = [
    { name: `${secret}\n` },
    { tools: [secret, `${secret}\u0007`] },
    { access: [secret] },
    { paths: [`/${secret}//`] },
    { commands: [[secret, `${secret}\n`]] },
    { network: secret },
    { action: secret },
  ];
  for (const members of places) {
    const { error } = fault(rule(members));
    t.ok(error);
    t.notMatch(`${error?.message} ${JSON.stringify(error?.data)}`, secret);
  }
  t.match(
    fault({ rule: [{ action: 'alow' }] }).error.message,
    'expected one of allow, ask, deny, came text of 4 characters (here.toml). Did you mean allow?',
  );
});

t.test('a file is TOML or JSON by its name, and one that is wrong stops the start', async (t) => {
  const folder = t.testdir({
    'p.toml': 'fallback = "ask"\n[[rule]]\naction = "allow"\ncommands = [["npm", "test"]]\n',
    'p.json': JSON.stringify({ fallback: 'ask', rules: [{ action: 'allow', commands: [['npm', 'test']] }] }),
    'p.yaml': '',
    'broken.toml': 'fallback = "hunter2\n',
    'broken.json': '{"hunter2": ',
    'wrong.toml': '[[rule]]\naction = "allow"\npaths = []\n',
    'dir.toml': {},
  });
  const read = async (name: string) => await readPolicyFile(join(folder, name), '--policy-file');
  t.equal(await readPolicyFile(undefined, 'default'), undefined);
  t.strictSame(await read('p.toml'), await read('p.json'));
  for (const name of ['p.yaml', 'broken.toml', 'broken.json', 'none.toml', 'dir.toml']) {
    const error: any = await read(name).catch((caught: unknown) => caught);
    t.match(error, { code: 'CONFIG_INVALID', data: { key: 'policy_file' } }, name);
    t.notMatch(error.message, 'hunter2');
  }
  await t.rejects(read('wrong.toml'), { code: 'CONFIG_INVALID', data: { key: 'rule[0].paths', where: join(folder, 'wrong.toml') } });
  writeFileSync(join(folder, 'large.json'), ' '.repeat(1024 * 1024 + 1));
  await t.rejects(read('large.json'), { code: 'CONFIG_INVALID' });
});

t.test('the examples are policies', async (t) => {
  const folder = join(projectRoot, 'examples', 'policies');
  const page = readFileSync(join(projectRoot, 'docs', 'policy.md'), 'utf8');
  const names = readdirSync(folder).filter((name) => name.endsWith('.toml'));
  t.same(names.sort(), ['ci-tests-only.toml', 'docs-only.toml', 'read-only-review.toml']);
  for (const name of names) {
    t.equal((await readPolicyFile(join(folder, name), name))?.fallback, 'deny', name);
    t.ok(page.includes(`\`\`\`toml\n${readFileSync(join(folder, name), 'utf8')}\`\`\``), `docs/policy.md shows ${name} as it is`);
  }
});
