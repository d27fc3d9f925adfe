import t from 'tap';
import { parsePolicy } from '../../../../src/main/config/policy/parse-policy.ts';
import type { PolicyAccessKind, PolicyRule } from '../../../../src/shared/policy-rules.ts';
import type { ResolvedAccess, ResolvedPath } from '../../../../src/shared/permission/mode-policy.ts';
import { CompiledPolicy, type RulePlaces, strictest } from '../../../../src/shared/permission/compiled-policy.ts';

const cwd = '/ws';
const places: RulePlaces = { cwd, home: '/home/me', ownDirectories: ['/home/me/.local/state/dsh-acp', '/home/me/policy.toml'] };

const policy = (rules: object[], more: object = {}): CompiledPolicy => new CompiledPolicy(parsePolicy({ rules, ...more }, 'test'), places);
const allow = (members: object): object => ({ action: 'allow', name: 'yes', ...members });
const deny = (members: object): object => ({ action: 'deny', name: 'no', ...members });
const ask = (members: object): object => ({ action: 'ask', name: 'maybe', ...members });

const file = (path: string): ResolvedPath => ({ given: path, canonical: path, isDirectory: false });
const directory = (path: string): ResolvedPath => ({ given: path, canonical: path, isDirectory: true });
const unknown = (path: string): ResolvedPath => ({ given: path, canonical: undefined });
const read = (...paths: ResolvedPath[]): ResolvedAccess => ({ kind: 'read', paths });
const write = (...paths: ResolvedPath[]): ResolvedAccess => ({ kind: 'write', paths });
const run = (command: string, where = cwd): ResolvedAccess => ({ kind: 'execute', command, cwd: where, canonicalCwd: where });
const delegate = (provider: string): ResolvedAccess => ({ kind: 'delegate', provider });
const none: ResolvedAccess = { kind: 'none' };

/** The word and the rule, as `allow yes`. */
const said = (rules: CompiledPolicy, access: ResolvedAccess, toolName = 'tool'): string => {
  const verdict = rules.decide({ toolName, access });
  return verdict === undefined ? 'nothing' : `${verdict.action} ${verdict.rule}`;
};

t.test('the first rule that matches decides; what no rule matches gets the fallback', async (t) => {
  const rules = policy([deny({ name: 'a', tools: ['x'] }), allow({ name: 'b', access: ['read'] }), deny({ name: 'c', access: ['read'] })]);
  t.equal(said(rules, read(file('/ws/f'))), 'allow b');
  t.equal(said(rules, read(file('/ws/f')), 'x'), 'deny a');
  t.equal(said(rules, write(file('/ws/f'))), 'deny fallback');
  t.equal(said(policy([], { fallback: 'ask' }), run('ls')), 'ask fallback');
  t.equal(said(policy([], { fallback: 'allow' }), run('ls | sh')), 'allow fallback');
});

t.test('a call that touches nothing is bound by rules, not by the fallback', async (t) => {
  t.equal(said(policy([]), none), 'nothing');
  t.equal(said(policy([deny({ access: ['none'] })]), none), 'deny no');
  t.equal(said(policy([deny({})]), none), 'deny no');
  t.equal(said(policy([allow({ tools: ['todo_*'] }), deny({})]), none, 'todo_write'), 'allow yes');
});

t.test('every member of a rule must match', async (t) => {
  const kinds: [PolicyAccessKind, ResolvedAccess][] = [
    ['read', read(file('/ws/a'))],
    ['write', write(file('/ws/a'))],
    ['execute', run('ls')],
    ['delegate', delegate('self')],
    ['none', none],
  ];
  for (const [kind, access] of kinds) {
    for (const [other] of kinds)
      t.equal(said(policy([deny({ access: [other] })], { fallback: 'ask' }), access) === 'deny no', kind === other);
  }
  const rule = policy([allow({ tools: ['b*h'], access: ['execute'], commands: [['ls', '...']] })]);
  t.equal(said(rule, run('ls -l'), 'bash'), 'allow yes');
  t.equal(said(rule, run('ls -l'), 'bashful'), 'deny fallback');
  t.equal(said(rule, run('rm x'), 'bash'), 'deny fallback');
});

t.test('paths', async (t) => {
  const cases: [string, ResolvedPath, boolean][] = [
    ['src/**', file('/ws/src/a/b.ts'), true],
    ['src/**', file('/ws/srcs/a'), false],
    ['src/**', file('/other/src/a'), false],
    ['src/*', file('/ws/src/a'), true],
    ['src/*', file('/ws/src/a/b'), false],
    ['*.md', file('/ws/deep/er/x.md'), true],
    ['*.md', file('/elsewhere/x.md'), false],
    ['./*.md', file('/ws/x.md'), true],
    ['./*.md', file('/ws/a/x.md'), false],
    ['**', file('/ws/.hidden/x'), true],
    ['**', file('/wsx/a'), false],
    ['/opt/*/bin', file('/opt/a/bin'), true],
    ['/opt/*/bin', file('/ws/opt/a/bin'), false],
    ['/**', file('/x'), true],
    ['~/notes/**', file('/home/me/notes/a'), true],
    ['~/notes/**', file('/ws/~/notes/a'), false],
    ['~/x', file('/home/me/a/x'), false],
    ['{a,b}/c', file('/ws/b/c'), true],
    // A directory is allowed only when all that may lie in it is.
    ['src/**', directory('/ws/src'), true],
    ['src/**', directory('/ws/src/a'), true],
    ['src/**', directory('/ws'), false],
    ['src/*', directory('/ws/src'), false],
    ['src/*', directory('/ws/src/a'), false],
    ['*', directory('/ws/src'), false],
    ['src', directory('/ws/src'), false],
    ['**', directory('/ws'), true],
    ['**/docs/**', directory('/ws/a/docs'), true],
    ['**/docs/**', directory('/ws/a'), false],
    ['src/*/**', directory('/ws/src'), false],
    ['[!a]/**', directory('/ws'), false],
    ['src/**', unknown('/ws/src/a'), false],
  ];
  for (const [glob, path, matches] of cases) {
    const what = `${glob} on ${path.given}${path.isDirectory === true ? '/' : ''}`;
    t.equal(said(policy([allow({ paths: [glob] })]), read(path)), matches ? 'allow yes' : 'deny fallback', what);
  }
});

t.test('a rule that denies needs less than one that allows', async (t) => {
  const rules = policy([deny({ paths: ['secrets/**', '~/private/**'] }), allow({ access: ['read'], paths: ['/**'] })]);
  t.equal(said(rules, read(file('/ws/a'))), 'allow yes');
  t.equal(said(rules, read(file('/ws/secrets/a'))), 'deny no');
  t.equal(said(rules, read(file('/ws/a'), file('/ws/secrets/a'))), 'deny no', 'any of several paths');
  t.equal(said(rules, read({ given: '/ws/secrets/link', canonical: '/ws/a' })), 'deny no', 'by the name that was given');
  t.equal(said(rules, read({ given: '/ws/a', canonical: '/ws/secrets/a' })), 'deny no', 'by where it leads');
  t.equal(said(rules, read(unknown('/ws/a'))), 'deny no', 'it might lead there');
  for (const above of ['/', '/ws', '/home']) {
    const verdict = rules.decide({ toolName: 'grep', access: read(directory(above)) });
    t.match(verdict, { action: 'deny', rule: 'no', why: /holds files/ }, above);
  }
  t.equal(said(rules, read(directory('/ws/src'))), 'allow yes');
  const homeless = new CompiledPolicy(parsePolicy({ rules: [deny({ paths: ['~/x'] }), allow({})] }, 'x'), { cwd, home: undefined });
  t.equal(said(homeless, read(file('/ws/a'))), 'deny no', 'a glob that cannot be placed may be about this');
});

t.test('a rule that asks is not passed by where it may be meant, and hides no rule that denies', async (t) => {
  const rules = policy([ask({ paths: ['drafts/**'] }), deny({ paths: ['secrets/**'] }), allow({})]);
  t.equal(said(rules, read(file('/ws/drafts/a'))), 'ask maybe');
  t.equal(said(rules, read(directory('/ws/drafts'))), 'ask maybe');
  t.equal(said(rules, read(file('/ws/drafts/a'), file('/ws/a'))), 'ask maybe');
  t.equal(said(rules, read(file('/ws/drafts/a'), file('/ws/secrets/a'))), 'deny no');
  t.equal(said(rules, read(directory('/ws'))), 'deny no');
  t.equal(said(policy([ask({ paths: ['drafts/**'] }), allow({})]), read(directory('/ws'))), 'ask maybe');
  t.equal(said(policy([ask({ paths: ['drafts/**'] }), allow({})]), read(unknown('/ws/a'))), 'deny fallback');
});

t.test('several paths are allowed only when each is', async (t) => {
  const rules = policy([allow({ paths: ['src/**'] }), allow({ name: 'also', paths: ['docs/**'] })]);
  t.equal(said(rules, write(file('/ws/src/a'), file('/ws/docs/b'))), 'allow yes');
  t.equal(said(rules, write(file('/ws/src/a'), file('/ws/x'))), 'deny fallback');
  t.equal(said(rules, write()), 'deny fallback', 'a call that names none');
  t.equal(said(policy([allow({ access: ['write'] })]), write()), 'deny fallback');
});

t.test('a rule that allows and names no paths speaks of the workspace alone', async (t) => {
  const rules = policy([allow({ access: ['read', 'write'] })]);
  t.equal(said(rules, write(file('/ws/a'))), 'allow yes');
  t.equal(said(rules, read(directory('/ws'))), 'allow yes');
  t.equal(said(rules, write(file('/tmp/a'))), 'deny fallback');
  t.equal(said(rules, read(unknown('/ws/a'))), 'deny fallback');
  t.equal(said(policy([deny({ access: ['read'] })]), read(file('/tmp/a'))), 'deny no');
  const open = policy([], { fallback: 'allow' });
  t.equal(said(open, write(file('/ws/a'))), 'allow fallback');
  t.equal(said(open, write(file('/tmp/a'))), 'ask fallback');
  t.equal(said(open, read(unknown('/ws/a'))), 'ask fallback');
});

t.test('what is guarded is opened by its own name alone', async (t) => {
  const guarded: [ResolvedAccess, string][] = [
    [write(file('/ws/.git/hooks/pre-commit')), '.git/hooks/pre-commit'],
    [write(file('/ws/.npmrc')), '/ws/.npmrc'],
    [write(file('/home/me/.bashrc')), '~/.bashrc'],
    [write(file('/home/me/policy.toml')), '~/policy.toml'],
    [write(file('/home/me/.local/state/dsh-acp/x')), '/home/me/.local/state/dsh-acp/x'],
    [read(file('/ws/.env')), '.env'],
    [read(file('/home/me/.ssh/id_rsa')), '~/.ssh/id_rsa'],
  ];
  for (const [access, name] of guarded) {
    for (const broad of [{ paths: ['/**'] }, { paths: ['**', '~/**', `${name}*`] }]) {
      const verdict = policy([allow(broad)]).decide({ toolName: 'tool', access });
      t.match(verdict, { action: 'ask', rule: 'yes', why: /secrets|trust/ }, `${name} by ${broad.paths.join()}`);
    }
    t.equal(said(policy([allow({ paths: [name] })]), access), 'allow yes', name);
    t.match(said(policy([], { fallback: 'allow' }), access), /^ask/);
  }
  t.equal(said(policy([allow({ paths: ['.env'] })]), read(file('/ws/sub/.env'))), 'ask yes', 'a bare name is exact in one place only');
  t.equal(
    said(policy([allow({ paths: ['.env'] })]), read({ given: '/ws/.env', canonical: '/ws/other/.env' })),
    'ask yes',
    'a link to another',
  );
});

t.test('commands', async (t) => {
  const rules = policy([
    allow({
      commands: [
        ['npm', 'test'],
        ['npm', 'run', 'lint:*', '...'],
      ],
    }),
  ]);
  t.equal(said(rules, run('npm test')), 'allow yes');
  t.equal(said(rules, run('npm run lint:all --fix')), 'allow yes');
  for (const line of [
    'npm test -- x',
    'npm test; rm x',
    'npm test && npm test',
    'A=b npm test',
    'npm test\n',
    'npm run lint',
    'sudo npm test',
  ]) {
    t.equal(said(rules, run(line)), 'deny fallback', line);
  }
  t.equal(said(rules, read(file('/ws/npm test'))), 'deny fallback');
  t.equal(said(rules, run('npm test', '/ws/sub')), 'deny fallback', 'the same words elsewhere are another program');
  const packages = policy([allow({ commands: [['npm', 'test']], paths: ['.', 'packages/*'] })]);
  t.equal(said(packages, run('npm test', '/ws/packages/a')), 'allow yes');
  t.equal(said(packages, run('npm test')), 'allow yes');
  t.equal(said(packages, run('npm test', '/ws/docs')), 'deny fallback');
  t.equal(said(packages, { kind: 'execute', command: 'npm test', cwd: '/ws', canonicalCwd: undefined }), 'deny fallback');
  t.equal(said(policy([allow({ paths: ['**'] })]), run('ls')), 'deny fallback', 'a rule about files is about no command');
  t.equal(said(policy([allow({ paths: ['**'], access: ['read', 'execute'] })]), run('ls')), 'deny fallback');
  const plainOnly = policy([deny({ commands: [['rm', '...']] }), allow({ access: ['execute'] })]);
  t.equal(said(plainOnly, run('rm -r x', '/anywhere')), 'deny no');
  t.equal(said(plainOnly, run('true; rm -r x')), 'allow yes', 'denying by command is no wall');
});

t.test('providers', async (t) => {
  const rules = policy([allow({ providers: ['self', 'local-*'] }), ask({ access: ['delegate'] })]);
  t.equal(said(rules, delegate('self')), 'allow yes');
  t.equal(said(rules, delegate('local-a')), 'allow yes');
  t.equal(said(rules, delegate('other')), 'ask maybe');
  t.equal(said(rules, run('self')), 'deny fallback');
  t.equal(said(policy([allow({ paths: ['**'] })]), delegate('self')), 'deny fallback', 'a rule about paths is not about this');
});

t.test('of two policies the stricter word counts, with the limits of both', async (t) => {
  const rule = (action: PolicyRule['action'], more: object = {}): object => ({ name: action, action, ...more });
  const order = ['allow', 'ask', 'deny'] as const;
  for (const [i, one] of order.entries()) {
    for (const [j, other] of order.entries()) {
      const server = policy([rule(one)]);
      const session = new CompiledPolicy(parsePolicy({ rules: [rule(other)] }, 'x'), places, 'session:');
      const call = { toolName: 'bash', access: run('ls') };
      const verdict = strictest([server.decide(call), session.decide(call)]);
      t.equal(verdict?.rule, i >= j ? one : `session:${other}`);
    }
  }
  const call = { toolName: 'bash', access: run('ls') };
  const cut = policy([rule('allow', { network: 'none' })], { ask_timeout_ms: 7 });
  t.match(strictest([policy([rule('ask')], { ask_timeout_ms: 9 }).decide(call), cut.decide(call)]), {
    action: 'ask',
    network: 'none',
    askTimeoutMs: 9,
  });
  const slower = policy([rule('ask')], { ask_timeout_ms: 20 }).decide(call);
  t.match(strictest([policy([rule('ask')], { ask_timeout_ms: 9 }).decide(call), slower]), { askTimeoutMs: 9 });
  t.equal(strictest([]), undefined);
});
