import t from 'tap';
import { parsePolicy } from '../../../../src/main/config/policy/parse-policy.ts';
import { CompiledPolicy } from '../../../../src/shared/permission/compiled-policy.ts';
import { isControlFile } from '../../../../src/shared/permission/control-files.ts';
import { decideAccess, type ResolvedAccess } from '../../../../src/shared/permission/mode-policy.ts';
import { workspaceRoots } from '../../../../src/shared/workspace-roots.ts';

const roots = workspaceRoots({ cwd: '/w/app', additionalDirectories: ['/lib', '/w/app', '/lib'] });
const touch = (kind: 'read' | 'write', path: string): ResolvedAccess => ({ kind, paths: [{ given: path, canonical: path }] });

t.test('the workspace is the cwd and the further directories, each once', async (t) => {
  t.strictSame(roots, ['/w/app', '/lib']);
  t.strictSame(workspaceRoots({ cwd: '/w' }), ['/w']);
});

t.test('a mode asks outside of all of them', async (t) => {
  const verdict = (kind: 'read' | 'write', path: string, of = roots) =>
    decideAccess('ask', touch(kind, path), { cwd: '/w/app', roots: of, grants: new Set() }).kind;
  for (const kind of ['read', 'write'] as const) {
    t.equal(verdict(kind, '/w/app/a'), 'allow');
    t.equal(verdict(kind, '/lib/a'), 'allow');
    t.equal(verdict(kind, '/lib'), 'allow');
    t.equal(verdict(kind, '/library/a'), 'ask');
    t.equal(verdict(kind, '/w/a'), 'ask');
    t.equal(verdict(kind, '/lib/a', ['/w/app']), 'ask');
  }
  t.equal(verdict('read', '/lib/.env'), 'ask');
  t.equal(verdict('write', '/lib/.git/config'), 'ask');
});

t.test('a policy that allows without a word about paths speaks of all of them; commands are meant in the cwd', async (t) => {
  const rules = [
    { name: 'files', access: ['read', 'write'], action: 'allow' },
    { name: 'tests', access: ['execute'], commands: [['npm', 'test']], action: 'allow' },
  ];
  const policy = new CompiledPolicy(parsePolicy({ rules }, 'test'), { cwd: '/w/app', roots, home: undefined });
  const ends = (access: ResolvedAccess) => policy.decide({ toolName: 'x', access })?.action;
  t.equal(ends(touch('write', '/lib/a')), 'allow');
  t.equal(ends(touch('write', '/elsewhere/a')), 'deny');
  const open = new CompiledPolicy(parsePolicy({ rules: [], fallback: 'allow' }, 'test'), { cwd: '/w/app', roots, home: undefined });
  t.equal(open.decide({ toolName: 'x', access: touch('read', '/lib/a') })?.action, 'allow');
  t.equal(open.decide({ toolName: 'x', access: touch('read', '/elsewhere/a') })?.action, 'ask');
  const run = (cwd: string): ResolvedAccess => ({ kind: 'execute', command: 'npm test', cwd, canonicalCwd: cwd });
  t.equal(ends(run('/w/app')), 'allow');
  t.equal(ends(run('/lib')), 'deny', 'the same words run what the other directory says');
});

t.test('names above a directory of the workspace do not guard it, those in the inner one do', async (t) => {
  const inTool = ['/home/me/.claude/trees/a', '/home/me'];
  t.equal(isControlFile('/home/me/.claude/trees/a/src/x', inTool), false);
  t.equal(isControlFile('/home/me/.claude/trees/a/.claude/x', inTool), true);
  t.equal(isControlFile('/home/me/.claude/x', inTool), true);
  t.equal(isControlFile('/elsewhere/.claude/x', inTool), true);
});
