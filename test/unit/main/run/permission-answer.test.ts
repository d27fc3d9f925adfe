/** What another agent asks for is decided as this server would decide it, and never more generously. */
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t from 'tap';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { parsePolicy } from '../../../../src/main/config/policy/parse-policy.ts';
import { answerPermission, isGrant, type PermissionRules } from '../../../../src/main/run/agent/permission-answer.ts';
import type { PermissionMode } from '../../../../src/shared/events.ts';
import type { PolicyRules } from '../../../../src/shared/policy-rules.ts';
import { CompiledPolicy } from '../../../../src/shared/permission/compiled-policy.ts';
import { refusedByMode } from '../../../../src/shared/permission/mode-policy.ts';
import { resolveAccess } from '../../../../src/worker/permission/resolve-access.ts';
import type { ToolAccess } from '../../../../src/worker/tools/tool.ts';

const options: RequestPermissionRequest['options'] = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];

const base = realpathSync(
  t.testdir({ work: { src: { 'a.js': '', sub: {} }, secrets: { 'b.txt': '' }, '.env': '' }, outside: { 'c.txt': '' } }),
);
const cwd = join(base, 'work');
symlinkSync(join(base, 'outside'), join(cwd, 'src/link'));
symlinkSync(join(base, 'outside/new.txt'), join(cwd, 'src/dangling'));

const grants = (toolCall: object, rules: Partial<PermissionRules>): boolean => {
  const request = { sessionId: 's', toolCall: { toolCallId: 'c', ...toolCall }, options } as RequestPermissionRequest;
  return isGrant(answerPermission(request, { policies: [], mode: 'full-access', cwd, ...rules }), request);
};
const under = (rules: object[], fallback = 'deny'): { policies: PolicyRules[] } => ({
  policies: [parsePolicy({ rules, fallback }, 'test')],
});
const run = (command: unknown, more = {}): object => ({ kind: 'execute', rawInput: { command, ...more } });
const touch = (kind: string, ...paths: string[]): object => ({ kind, locations: paths.map((path) => ({ path: join(cwd, path) })) });

t.test('a rule that allows says no more to another agent than to this server', (t) => {
  const writes = under([{ action: 'allow', access: ['write'], paths: ['src/**'] }]);
  t.ok(grants(touch('edit', 'src/new.js'), writes));
  t.notOk(grants(touch('edit', 'src/link/c.txt'), writes), 'a link leads out');
  t.notOk(grants(touch('edit', 'src/dangling'), writes), 'a link would make a file elsewhere');
  t.notOk(grants(touch('edit', 'src/.git/config'), writes), 'a broad word opens no guarded file');
  const paths = under([{ action: 'allow', paths: ['src/**'] }]);
  t.notOk(
    grants({ ...run('rm -rf src'), locations: [{ path: join(cwd, 'src/a.js') }] }, paths),
    'a word about files is none about programs',
  );
  t.notOk(grants({ kind: 'fetch', locations: [{ path: join(cwd, 'src/a.js') }] }, paths), 'what it does is not known');
  const reads = under([{ action: 'allow', access: ['read'] }]);
  t.ok(grants(touch('read', 'src/a.js'), reads));
  t.notOk(grants(touch('read', '../outside/c.txt'), reads), 'a rule without paths speaks of the workspace');
  t.notOk(grants(touch('read', '.env'), reads), 'a broad word opens no secret');
  t.notOk(grants({ kind: 'read' }, reads), 'it may be any file');
  t.ok(grants(touch('read', '.env'), under([{ action: 'allow', access: ['read'], paths: ['./.env'] }])));
  const notSecrets = under([
    { action: 'deny', paths: ['secrets/**'] },
    { action: 'allow', access: ['read'] },
  ]);
  t.ok(grants(touch('search', 'src'), notSecrets));
  t.notOk(grants(touch('search', '.'), notSecrets), 'the directory holds what is denied');
  t.notOk(grants(touch('read', 'src/a.js', 'secrets/b.txt'), notSecrets));
  t.end();
});

t.test('a command is plain or it is none', (t) => {
  const tests = under([{ action: 'allow', commands: [['npm', 'test', '...']] }]);
  t.ok(grants(run('npm test'), tests));
  t.ok(grants(run(['npm', 'test', 'two words']), tests));
  for (const command of [
    'npm  test',
    'npm test\nid',
    'npm test $HOME',
    'npm test *',
    'A=b npm test',
    '"npm" test',
    'npm test ~',
    '',
    7,
    undefined,
  ])
    t.notOk(grants(run(command), tests), JSON.stringify(command));
  for (const command of [['npm', 'test', "'; id; '"], ['npm', 'test', '$(id)'], ['npm test'], ['npm', 'test\n'], [], ['npm', 7]])
    t.notOk(grants(run(command), tests), JSON.stringify(command));
  t.notOk(grants(run('npm test', { cwd: 'src' }), tests), 'elsewhere the same words mean another program');
  t.ok(grants(run('npm test', { workdir: cwd }), tests));
  const local = under([{ action: 'allow', access: ['read', 'execute'], network: 'none' }]);
  t.notOk(grants(run('npm test'), local), 'its network cannot be cut off here');
  t.ok(grants(touch('read', 'src/a.js'), local));
  t.end();
});

t.test('what cannot be known may be what a rule restricts, unless a rule ahead of it allows', (t) => {
  const noGit = { action: 'deny', commands: [['git', '...']] };
  const noFetch = { action: 'ask', tools: ['fetch*'] };
  t.notOk(grants(run('x=git; $x push'), under([noGit], 'allow')));
  t.ok(grants(run('x=git; $x push'), under([{ action: 'allow', access: ['execute'] }, noGit])));
  t.notOk(grants(run('ls'), under([noFetch], 'allow')), 'the tool may be that one');
  t.ok(grants({ ...run('ls'), name: 'shell' }, under([noFetch], 'allow')));
  t.notOk(grants({ ...run('ls'), name: 'fetch_url' }, under([noFetch], 'allow')));
  t.notOk(grants(run('ls'), under([{ action: 'allow', tools: ['bash'] }])), 'the tool need not be that one');
  t.end();
});

t.test('a mode refuses what it refuses beside a policy, too, and asks nobody about secrets', (t) => {
  const all = under([{ action: 'allow' }]);
  t.ok(grants(touch('edit', 'src/a.js'), all));
  t.notOk(grants(touch('edit', 'src/a.js'), { ...all, mode: 'read-only' }));
  t.notOk(grants(run('ls'), { ...all, mode: 'read-only' }));
  t.ok(grants(touch('read', 'src/a.js'), { mode: 'ask' }));
  t.notOk(grants(touch('read', '.env'), { mode: 'ask' }));
  t.notOk(grants(touch('read', '../outside/c.txt'), { mode: 'ask' }));
  t.notOk(grants(touch('edit', '.git/hooks/pre-commit'), { mode: 'accept-edits' }));
  t.end();
});

t.test('whatever the rules are, nothing is granted that the gate of a session would not allow', async (t) => {
  mkdirSync(join(cwd, '.ssh'), { recursive: true });
  writeFileSync(join(cwd, '.ssh/id_rsa'), '');
  const globs = ['src/**', '*.js', '.', './.env', 'secrets/**', '/**', 'src/*', '**/b.txt', '.ssh/**'];
  const files = [
    'src/a.js',
    'src',
    '.',
    '.env',
    'secrets/b.txt',
    '../outside/c.txt',
    'src/link/c.txt',
    '.ssh/id_rsa',
    'new.js',
    'src/dangling',
  ];
  const commands = ['npm test', 'npm test; id', 'ls', 'ls -l', 'ls  -l', ''];
  const some = <T>(...values: T[]): fc.Arbitrary<T[]> => fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 3 });
  const rule = fc.record(
    {
      action: fc.constantFrom('allow', 'ask', 'deny'),
      tools: some('bash', '*', 'r*'),
      access: some('read', 'write', 'execute', 'none'),
      paths: some(...globs),
      commands: some(['npm', 'test'], ['ls', '...'], ['*', '...']),
    },
    { requiredKeys: ['action'] },
  );
  const call = fc.record({
    name: fc.constantFrom(undefined, 'bash', 'read'),
    kind: fc.constantFrom('read', 'edit', 'execute', 'think'),
    paths: fc.array(fc.constantFrom(...files), { maxLength: 2 }),
    command: fc.constantFrom(...commands),
  });
  const seen = { granted: 0, refused: 0 };
  const property = fc.asyncProperty(
    fc.array(rule, { maxLength: 4 }),
    fc.constantFrom('allow', 'ask', 'deny'),
    call,
    fc.constantFrom<PermissionMode>('ask', 'read-only', 'full-access'),
    async (rules, fallback, { name, kind, paths, command }, mode) => {
      let policies: PolicyRules[];
      try {
        ({ policies } = under(rules, fallback));
      } catch {
        return; // Members that cannot go together.
      }
      const asked = {
        name,
        kind,
        ...(kind === 'execute' ? { rawInput: { command } } : { locations: paths.map((path) => ({ path: join(cwd, path) })) }),
      };
      const isGranted = grants(asked, { policies, mode });
      seen[isGranted ? 'granted' : 'refused'] += 1;
      if (!isGranted) return;
      const accesses: Record<string, ToolAccess> = {
        read: { kind: 'read', paths: paths.map((path) => join(cwd, path)) },
        edit: { kind: 'write', paths: paths.map((path) => join(cwd, path)) },
        execute: { kind: 'execute', command, cwd },
        think: { kind: 'none' },
      };
      const access = await resolveAccess(accesses[kind]!, true);
      const verdict = new CompiledPolicy(policies[0]!, { cwd, home: undefined }).decide({ toolName: name ?? 'nameless', access });
      t.ok(refusedByMode(mode, access) === undefined && (verdict?.action ?? 'allow') === 'allow', JSON.stringify({ rules, asked, mode }));
    },
  );
  await fc.assert(property, { numRuns: 1500 });
  t.ok(seen.granted > 20 && seen.refused > 20, `${seen.granted} granted, ${seen.refused} refused`);
});
