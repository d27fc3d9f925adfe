/** What an undo may write without being told to go ahead. */
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { RuleVerdict } from '../../../../src/shared/permission/compiled-policy.ts';
import { pathGrant } from '../../../../src/shared/permission/mode-policy.ts';
import { SessionPermissions, type SessionPermissionsOptions } from '../../../../src/worker/permission/session-permissions.ts';

function gate(
  t: Test,
  options: Partial<SessionPermissionsOptions> = {},
): { readonly permissions: SessionPermissions; readonly cwd: string } {
  const cwd = join(realpathSync(t.testdir({ ws: {}, outside: {} })), 'ws');
  const fail = (): never => {
    throw new Error('nobody is asked, and nothing is logged');
  };
  const permissions = new SessionPermissions({
    sessionId: 's',
    cwd,
    mode: 'ask',
    timeoutMs: 0,
    journal: { append: fail },
    ask: fail,
    withdraw: fail,
    flush: fail,
    toolCall: fail,
    ...options,
  });
  return { permissions, cwd };
}

const ruling = (verdict: RuleVerdict | undefined): Partial<SessionPermissionsOptions> => ({ policies: [{ decide: () => verdict }] });

t.test(
  'by its mode: what a tool may write without a question is written, what needs one must be forced, what is refused stays',
  async (t) => {
    const { permissions, cwd } = gate(t);
    const verdict = async (name: string) => (await permissions.verdictOnUndo(join(cwd, name))).kind;
    t.equal(await verdict('a.ts'), 'allow');
    t.match(await permissions.verdictOnUndo(join(cwd, '../outside/a.ts')), { kind: 'ask', why: /^this path lies outside the workspace$/ });
    t.equal(await verdict('.git/config'), 'ask');
    mkdirSync(join(cwd, 'd'));
    symlinkSync(join(cwd, '../outside'), join(cwd, 'd/link'));
    t.equal(await verdict('d/link/a.ts'), 'ask', 'where a link leads counts');
    permissions.setMode('accept-edits');
    t.equal(await verdict('../outside/a.ts'), 'allow');
    t.equal(await verdict('.git/config'), 'ask');
    permissions.setMode('full-access');
    t.equal(await verdict('.git/config'), 'allow');
    for (const mode of ['read-only', 'plan'] as const) {
      permissions.setMode(mode);
      t.equal(await verdict('a.ts'), 'deny');
    }
  },
);

t.test('by answers for good: what was allowed is written, what was rejected is left in every mode', async (t) => {
  const { permissions, cwd } = gate(t);
  const path = join(cwd, '.envrc');
  writeFileSync(path, '');
  const { key } = pathGrant('write', [{ given: path, canonical: path }]);
  const decided = (outcome: 'allow-session' | 'reject-session') =>
    permissions.observe({ type: 'permission/decided', data: { turn: 1, callId: 'c', outcome, by: 'client', grant: key } });
  decided('allow-session');
  t.match(await permissions.verdictOnUndo(path), { kind: 'allow' });
  decided('reject-session');
  permissions.setMode('full-access');
  t.match(await permissions.verdictOnUndo(path), { kind: 'deny', why: /rejected for good/ });
});

t.test('by a policy: its word counts, and its rule is named', async (t) => {
  const verdict = async (action: RuleVerdict['action'], rule: string) => {
    const { permissions, cwd } = gate(t, ruling({ action, rule, network: undefined, askTimeoutMs: undefined, why: undefined }));
    return await permissions.verdictOnUndo(join(cwd, '../outside/a'));
  };
  t.match(await verdict('allow', 'yes'), { kind: 'allow' });
  t.match(await verdict('deny', 'no'), { kind: 'deny', why: /"no" of the policy denies it/ });
  t.match(await verdict('ask', 'maybe'), { kind: 'ask', why: /"maybe"/ });
  const { permissions, cwd } = gate(t, {
    policies: [
      {
        decide: () => {
          throw new Error('broken');
        },
      },
    ],
  });
  t.match(await permissions.verdictOnUndo(join(cwd, 'a')), { kind: 'deny' }, 'doubt is a no');
});
