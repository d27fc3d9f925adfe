import * as fc from 'fast-check';
import t from 'tap';
import type { PermissionMode } from '../../../../src/shared/events.ts';
import { isInside } from '../../../../src/shared/path-inside.ts';
import { decideAccess, type ResolvedAccess } from '../../../../src/shared/permission/mode-policy.ts';

const cwd = '/home/u/ws';
const modes: readonly PermissionMode[] = ['ask', 'accept-edits', 'read-only', 'full-access'];
const context = { cwd, grants: new Set<string>(), ownDirectories: ['/srv/dsh-state'] };

const access = (kind: 'read' | 'write', ...paths: string[]): ResolvedAccess => {
  return { kind, paths: paths.map((path) => ({ given: path, canonical: path })) };
};
/** One letter per mode, in the order of `modes`: a(llow), ? (ask), d(eny). */
const verdicts = (what: ResolvedAccess): string => {
  return modes.map((mode) => ({ allow: 'a', granted: 'g', ask: '?', deny: 'd' })[decideAccess(mode, what, context).kind]).join('');
};

const table: readonly (readonly [kind: 'read' | 'write', verdicts: string, paths: readonly string[]])[] = [
  ['read', 'aaaa', [cwd, `${cwd}/a.ts`, `${cwd}/..a`, `${cwd}/.git/config`, `${cwd}/AGENTS.md`, `${cwd}/environment`, `${cwd}/id_rsa.pub`]],
  ['read', '?a?a', ['/home/u/ws_evil/a', '/home/u', '/', '/etc/passwd', '/home/u/w', '/tmp/x', '/proc/self/environ']],
  [
    'read',
    '???a',
    [
      `${cwd}/.env`,
      `${cwd}/.ENV`,
      `${cwd}/.env.local`,
      `${cwd}/deep/down/.env`,
      `${cwd}/key.pem`,
      `${cwd}/a/id_rsa`,
      `${cwd}/id_ed25519`,
      `${cwd}/.npmrc`,
      '/home/u/.ssh/config',
      '/home/u/.ssh',
      '/home/u/.netrc',
      '/home/u/.aws/credentials',
      '/home/u/.config/gh/hosts.yml',
    ],
  ],
  [
    'write',
    'aada',
    [`${cwd}/a.ts`, `${cwd}/new/dir/b`, `${cwd}/.gitignore`, `${cwd}/AGENTS.md`, `${cwd}/.github/CODEOWNERS`, `${cwd}/git`],
  ],
  ['write', '?ada', ['/home/u/ws_evil/a', '/home/u/other/a', '/tmp/x', '/dev/shm/x', '/home/u/ws.bak']],
  [
    'write',
    '??da',
    [
      `${cwd}/.git/hooks/pre-commit`,
      `${cwd}/.git`,
      `${cwd}/.GIT/config`,
      `${cwd}/.git./config`,
      `${cwd}/.g\u200cit/config`,
      `${cwd}/sub/module/.git/config`,
      `${cwd}/.github/workflows/ci.yml`,
      `${cwd}/.vscode/tasks.json`,
      `${cwd}/.idea/x.xml`,
      `${cwd}/.zed/settings.json`,
      `${cwd}/.envrc`,
      `${cwd}/.mcp.json`,
      `${cwd}/.claude/settings.json`,
      `${cwd}/.Cursor/rules`,
      `${cwd}/.husky/pre-push`,
      `${cwd}/packages/a/.npmrc`,
      `${cwd}/.yarnrc.yml`,
      '/home/u/.bashrc',
      '/home/u/.zshrc',
      '/home/u/.profile',
      '/home/u/.gitconfig',
      '/home/u/.ssh/authorized_keys',
      '/home/u/.config/fish/conf.d/a.fish',
      '/home/u/.config/dsh-acp/config.toml',
      '/home/u/.local/state/dsh-acp/sessions/x.jsonl',
      '/srv/dsh-state/sessions/x.jsonl',
      '/home/u/.aws/config',
      '/etc/hosts',
      '/proc/self/mem',
      '/dev/sda',
    ],
  ],
];

for (const [kind, expected, paths] of table) {
  t.test(`${kind} in the modes ask, accept-edits, read-only, full-access is ${expected}`, async (t) => {
    for (const path of paths) t.equal(verdicts(access(kind, path)), expected, JSON.stringify(path));
  });
}

t.test('commands ask for exactly what they are, whatever they look like', async (t) => {
  for (const command of ['ls', 'git status; curl x | sh', 'echo `id`', 'FOO=1 true && rm -rf /', '']) {
    t.equal(verdicts({ kind: 'execute', command, cwd }), '??da', command);
  }
  t.equal(verdicts({ kind: 'none' }), 'aaaa');
});

t.test('a call that names no file, or one whose place is unknown, asks', async (t) => {
  t.equal(verdicts(access('write')), '??da');
  t.equal(verdicts({ kind: 'write', paths: [{ given: `${cwd}/a`, canonical: undefined }] }), '?ada');
  t.equal(verdicts({ kind: 'read', paths: [{ given: `${cwd}/loop`, canonical: undefined }] }), '?a?a');
});

t.test('both the name given and the place behind it count', async (t) => {
  const via = (kind: 'read' | 'write', given: string, canonical: string) => verdicts({ kind, paths: [{ given, canonical }] });
  t.equal(via('write', `${cwd}/link`, '/etc/passwd'), '??da');
  t.equal(via('write', `${cwd}/link`, `${cwd}/.git/config`), '??da');
  t.equal(via('write', `${cwd}/.git/config`, `${cwd}/plain`), '??da');
  t.equal(via('read', `${cwd}/notes`, `${cwd}/.env`), '???a');
  t.equal(via('write', '/alias/ws/a', `${cwd}/a`), 'aada', 'an alias of the workspace is the workspace');
});

t.test('one path that asks is enough, and only such paths are granted', async (t) => {
  const what = access('write', `${cwd}/a`, '/tmp/b');
  const verdict = decideAccess('ask', what, context);
  if (verdict.kind !== 'ask') throw new Error('must ask');
  t.equal(verdict.grant.key, '["write","/tmp/b"]');
  t.match(verdict.why, /outside the workspace/);
});

t.test('a workspace may lie in the directory of a tool', async (t) => {
  const inTool = { cwd: '/home/u/.cursor/worktrees/a', grants: new Set<string>() };
  t.equal(decideAccess('ask', access('write', '/home/u/.cursor/worktrees/a/x.ts'), inTool).kind, 'allow');
  t.equal(decideAccess('ask', access('write', '/home/u/.cursor/worktrees/a/.cursor/x'), inTool).kind, 'ask');
  t.equal(decideAccess('ask', access('write', '/w/.git/hooks/x'), { ...inTool, cwd: '/w/.git' }).kind, 'ask', '.git guards itself');
});

t.test('a grant holds for the same command and directory only, and never against a denial', async (t) => {
  const command = (text: string, directory = cwd): ResolvedAccess => ({ kind: 'execute', command: text, cwd: directory });
  const asked = decideAccess('ask', command('npm test'), context);
  if (asked.kind !== 'ask') throw new Error('must ask');
  const granted = { cwd, grants: new Set([asked.grant.key]) };
  t.match(decideAccess('ask', command('npm test'), granted), { kind: 'granted', key: asked.grant.key });
  for (const other of ['npm test ', 'npm test; rm x', 'npm  test', 'NPM test']) {
    t.equal(decideAccess('ask', command(other), granted).kind, 'ask', other);
  }
  t.equal(decideAccess('ask', command('npm test', `${cwd}/sub`), granted).kind, 'ask');
  t.equal(decideAccess('read-only', command('npm test'), granted).kind, 'deny');
});

t.test('delegating: this server is trusted, another program is asked about, once for each', async (t) => {
  const delegate = (provider: string): ResolvedAccess => ({ kind: 'delegate', provider });
  t.equal(verdicts(delegate('self')), 'aaaa');
  t.equal(verdicts(delegate('other')), '??da');
  const asked = decideAccess('ask', delegate('other'), context);
  if (asked.kind !== 'ask') throw new Error('must ask');
  const granted = { cwd, grants: new Set([asked.grant.key]) };
  t.equal(decideAccess('accept-edits', delegate('other'), granted).kind, 'granted');
  t.equal(decideAccess('accept-edits', delegate('third'), granted).kind, 'ask');
  t.match(decideAccess('read-only', delegate('other'), granted), { kind: 'deny', text: /read-only.*"self"/ });
});

t.test('no two accesses share a grant', async () => {
  const text = fc.string({ maxLength: 6, unit: fc.constantFrom('a', '"', ',', '\\', '/', '\0', ' ') });
  const any = fc.oneof(
    fc.record({ kind: fc.constant('execute' as const), command: text, cwd: text }),
    fc.record({ kind: fc.constantFrom('read' as const, 'write' as const), path: text.map((name) => `/out/${name}`) }),
  );
  type Any = { kind: 'execute'; command: string; cwd: string } | { kind: 'read' | 'write'; path: string };
  const keyOf = (one: Any): string => {
    const verdict = decideAccess('ask', one.kind === 'execute' ? one : access(one.kind, one.path), context);
    return verdict.kind === 'ask' ? verdict.grant.key : 'none';
  };
  fc.assert(fc.property(any, any, (a, b) => (JSON.stringify(a) === JSON.stringify(b)) === (keyOf(a) === keyOf(b))));
});

t.test('inside is a matter of whole names', async (t) => {
  t.ok(isInside('/a', '/a/b'));
  t.ok(isInside('/', '/a'));
  t.ok(isInside('/a', '/a/..b'));
  t.notOk(isInside('/a', '/a_evil'));
  t.notOk(isInside('/a/b', '/a'));
  t.notOk(isInside('/a', '/a/../b'));
});
