/** Who may use which key: the order of places it comes from, signing in and out, and the ways that a client is offered. */
import t from 'tap';
import { AuthMethods } from '../../../../src/main/acp/auth/auth-methods.ts';
import { Credentials, type CredentialsParts } from '../../../../src/main/acp/auth/credentials.ts';
import type { FoundKey } from '../../../../src/main/credentials/key-store.ts';
import type { ModelAccess } from '../../../../src/shared/config.ts';

const scripted: ModelAccess = { model: { kind: 'scripted', paceMs: 0 }, prices: undefined };
const deepseek = (apiKey?: string): ModelAccess => {
  const model = { kind: 'openai-compatible', dialect: 'deepseek', baseUrl: 'https://api.deepseek.com', model: 'deepseek-flash', apiKey };
  return { model, prices: { input: 1, output: 1, cacheRead: 1 } } as unknown as ModelAccess;
};

class Store {
  found: FoundKey = { kind: 'none' };
  readonly asked: string[] = [];

  async find(baseUrl: string): Promise<FoundKey> {
    this.asked.push(baseUrl);
    return this.found;
  }

  async remove(): Promise<boolean> {
    this.found = { kind: 'none' };
    return true;
  }

  has(key: string): void {
    this.found = { kind: 'key', key, from: 'a file' };
  }
}

function signedWith(configured: ModelAccess, more: Partial<CredentialsParts> = {}): { credentials: Credentials; keys: Store } {
  const keys = new Store();
  return { credentials: new Credentials({ configured, keys, keyVariable: 'DEEPSEEK_API_KEY', ...more }), keys };
}

const keyOf = ({ model }: ModelAccess): string | undefined => (model.kind === 'openai-compatible' ? model.apiKey : undefined);

t.test('a key of the environment goes before a stored one, which is looked up each time', async (t) => {
  const own = signedWith(deepseek('sk-env'));
  own.keys.has('sk-stored');
  t.equal(keyOf(await own.credentials.refresh()), 'sk-env');
  t.same(own.keys.asked, [], 'and needs no look at the store');
  const { credentials, keys } = signedWith(deepseek());
  await credentials.refresh();
  t.throws(() => credentials.require(), { code: 'AUTH_REQUIRED', message: /there is none.*dsh-acp login.*DEEPSEEK_API_KEY/ });
  keys.has('sk-1');
  const first = await credentials.refresh();
  t.equal(keyOf(first), 'sk-1');
  t.equal(credentials.access, first);
  credentials.require();
  keys.has('sk-2');
  await credentials.refresh();
  t.equal(keyOf(first), 'sk-1', 'who began with a key keeps it');
  keys.found = { kind: 'unusable', reason: '/c/credentials.json is not used: other users may read it' };
  await credentials.refresh();
  t.throws(() => credentials.require(), { code: 'AUTH_REQUIRED', message: /other users may read it/ });
});

t.test('signing out holds until the client signs in again, or somebody stores another key', async (t) => {
  const { credentials, keys } = signedWith(deepseek('sk-env'));
  keys.has('sk-stored');
  await credentials.signOut();
  t.same(keys.found, { kind: 'none' }, 'the stored key is gone');
  t.throws(() => credentials.require(), { code: 'AUTH_REQUIRED', message: /signed out/ }, 'the one of the environment is left alone');
  keys.has('sk-new');
  t.equal(keyOf(await credentials.refresh()), 'sk-new');
  await credentials.signOut();
  await credentials.signIn();
  t.equal(keyOf(credentials.access), 'sk-env');
  const stuck = signedWith(deepseek(), {
    keys: { find: async () => ({ kind: 'none' }), remove: () => Promise.reject(new Error('read-only')) },
  });
  await t.rejects(stuck.credentials.signOut(), { code: 'INTERNAL' });
});

t.test('a server that shows its demo for want of a key goes over to the model once there is one, and not back', async (t) => {
  const { credentials, keys } = signedWith(scripted, { withKey: deepseek() });
  t.equal((await credentials.refresh()).model.kind, 'scripted');
  credentials.require();
  keys.has('sk-1');
  t.match(await credentials.refresh(), { model: { kind: 'openai-compatible', apiKey: 'sk-1' }, prices: { input: 1 } });
  await credentials.signOut();
  t.throws(() => credentials.require(), { code: 'AUTH_REQUIRED' }, 'the work of a person is not given to a demo');
  const demo = signedWith(scripted);
  await demo.credentials.signOut();
  demo.credentials.require();
  t.equal(demo.credentials.access, scripted, 'a chosen demo needs no key');
});

t.test('a log-in on a terminal is offered only to a client that has one', async (t) => {
  const launch = { command: '/bin/node', args: ['/x/cli.js', '--model', 'm'], env: { DSH_ACP_MODEL: 'm' } };
  const offered = (capabilities: object | undefined): any[] => {
    const auth = new AuthMethods(launch);
    auth.initialize(capabilities);
    return auth.list('MY_KEY');
  };
  for (const capabilities of [undefined, {}, { auth: { terminal: false } }, { terminal: true }, { _meta: { 'terminal-auth': 'yes' } }]) {
    t.match(offered(capabilities), [{ id: 'api-key', description: /dsh-acp login.*MY_KEY/ }]);
    t.equal(offered(capabilities).length, 1, 'never none, and here no more');
  }
  t.match(offered({ auth: { terminal: true } })[1], { type: 'terminal', id: 'login', args: ['--login'], _meta: undefined });
  const relaunch = { command: '/bin/node', args: ['/x/cli.js', '--model', 'm', '--login'], env: { DSH_ACP_MODEL: 'm' }, label: /login/ };
  const [, before] = offered({ _meta: { 'terminal-auth': true } });
  t.match(before, { id: 'login', _meta: { 'terminal-auth': relaunch } });
  t.notOk('type' in before || 'args' in before, 'a client that does not know the type is not shown it');
  t.match(offered({ auth: { terminal: true }, _meta: { 'terminal-auth': true } })[1], {
    type: 'terminal',
    _meta: { 'terminal-auth': relaunch },
  });
});

t.test('authenticate takes the methods that are not for a terminal', async (t) => {
  const { credentials, keys } = signedWith(deepseek());
  const auth = new AuthMethods({ command: 'x', args: [], env: {} });
  await t.rejects(auth.authenticate('login', credentials), { code: 'INVALID_PARAMS' });
  await t.rejects(auth.authenticate('constructor', credentials), { code: 'INVALID_PARAMS', data: { expected: ['api-key'] } });
  await t.rejects(auth.authenticate('api-key', credentials), { code: 'AUTH_REQUIRED' });
  auth.initialize({ auth: { terminal: true } });
  await t.rejects(auth.authenticate('login', credentials), { code: 'INVALID_PARAMS', message: /runs on a terminal/ });
  auth.initialize({ _meta: { 'terminal-auth': true } });
  keys.has('sk-1');
  await auth.authenticate('login', credentials);
  await auth.authenticate('api-key', credentials);
});
