/** Stored keys: who may read them, what is done with a file that others could have touched, and the keyring in front of it. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import t, { type Test } from 'tap';
import { KeyStore } from '../../../../src/main/credentials/key-store.ts';
import { type Keyring, secretToolKeyring } from '../../../../src/main/credentials/keyring.ts';
import { isSecretFile } from '../../../../src/shared/permission/secret-files.ts';

const deepseek = 'https://api.deepseek.com';
const local = 'http://127.0.0.1:8000/v1';

const noKeyring: Keyring = { store: async () => false, find: async () => undefined, remove: async () => undefined };

/** A keyring in memory that counts how often it is asked. */
class FakeKeyring implements Keyring {
  readonly keys = new Map<string, string>();
  asked = 0;
  locked = false;

  async store(baseUrl: string, key: string): Promise<boolean> {
    if (!this.locked) this.keys.set(baseUrl, key);
    return !this.locked;
  }

  async find(baseUrl: string): Promise<string | undefined> {
    this.asked += 1;
    return this.locked ? undefined : this.keys.get(baseUrl);
  }

  async remove(baseUrl: string): Promise<void> {
    this.keys.delete(baseUrl);
  }
}

function storeIn(t: Test, keyring: Keyring = noKeyring): KeyStore {
  return new KeyStore(join(t.testdir({}), 'config', 'dsh-acp', 'credentials.json'), async () => keyring);
}

t.test('a key is for its server alone, and its file for its user alone', async (t) => {
  const umask = process.umask(0);
  t.teardown(() => process.umask(umask));
  const store = storeIn(t);
  t.same(store.has(deepseek), { stored: false });
  t.same(await store.find(deepseek), { kind: 'none' });
  t.equal(await store.store(deepseek, 'sk-1'), store.path);
  await store.store(local, 'other');
  t.same(await store.find(deepseek), { kind: 'key', key: 'sk-1', from: store.path });
  t.same(await store.find(local), { kind: 'key', key: 'other', from: store.path });
  t.same(await store.find(`${deepseek}.evil.example`), { kind: 'none' });
  t.equal(statSync(store.path).mode & 0o777, 0o600);
  t.equal(statSync(join(store.path, '..')).mode & 0o777, 0o700);
  t.same(readdirSync(join(store.path, '..')), ['credentials.json'], 'nothing unfinished is left');
  t.ok(isSecretFile(store.path), 'tools ask before they read it');

  const other = new KeyStore(store.path, async () => noKeyring);
  await other.store(deepseek, 'sk-2');
  t.match(await store.find(deepseek), { key: 'sk-2' }, 'what another process stored is seen at once');
  t.equal(await store.remove(deepseek), true);
  t.equal(await store.remove(deepseek), false);
  t.match(await other.find(local), { key: 'other' });
  await store.remove(local);
  t.notOk(existsSync(store.path), 'the last key takes the file with it');
});

t.test('a file that others can read, that is a link, or that is none of ours is not used, and not written over', async (t) => {
  const spoil: [string, (path: string) => void, RegExp][] = [
    ['open to others', (path) => chmodSync(path, 0o640), /other users may read it; run: chmod 600/],
    ['no JSON', (path) => writeFileSync(path, '{"keys": sk-secret-of-ours'), /not what dsh-acp login writes/],
    ['another shape', (path) => writeFileSync(path, '{"version":1,"keys":{"a":{"key":"with blank"}}}'), /not what dsh-acp login writes/],
    ['a later version', (path) => writeFileSync(path, '{"version":2,"keys":{}}'), /not what dsh-acp login writes/],
    ['too large', (path) => writeFileSync(path, ' '.repeat(300_000)), /too large/],
  ];
  for (const [what, change, reason] of spoil) {
    const store = storeIn(t);
    await store.store(deepseek, 'sk-1');
    change(store.path);
    const text = readFileSync(store.path, 'utf8');
    const found = await store.find(deepseek);
    t.match(found, { kind: 'unusable', reason }, what);
    t.notMatch(JSON.stringify(found), /sk-/);
    t.match(store.has(deepseek), { stored: false, reason });
    await t.rejects(store.store(deepseek, 'sk-2'), { message: reason });
    await t.rejects(store.remove(deepseek), { message: reason });
    t.equal(readFileSync(store.path, 'utf8'), text);
  }
  const linked = storeIn(t);
  mkdirSync(join(linked.path, '..'), { recursive: true });
  symlinkSync('/etc/hostname', linked.path);
  t.match(await linked.find(deepseek), { kind: 'unusable', reason: /symbolic link/ });
});

t.test('where there is a keyring the file only points to it, and it is asked once for each change', async (t) => {
  const keyring = new FakeKeyring();
  const store = storeIn(t, keyring);
  t.equal(await store.store(deepseek, 'sk-1'), 'the keyring');
  t.notMatch(readFileSync(store.path, 'utf8'), /sk-1/);
  t.same(store.has(deepseek), { stored: true }, 'known without asking');
  t.equal(keyring.asked, 0);
  for (let i = 0; i < 3; i += 1) t.same(await store.find(deepseek), { kind: 'key', key: 'sk-1', from: 'the keyring' });
  t.equal(keyring.asked, 1);
  await new KeyStore(store.path, async () => keyring).store(deepseek, 'sk-2');
  t.match(await store.find(deepseek), { key: 'sk-2' });
  await store.remove(deepseek);
  t.equal(keyring.keys.size, 0);
  t.same(await store.find(deepseek), { kind: 'none' });

  await store.store(deepseek, 'sk-3');
  keyring.locked = true;
  const fresh = new KeyStore(store.path, async () => keyring);
  t.match(await fresh.find(deepseek), { kind: 'unusable', reason: /keyring.*locked/ });
  t.equal(await store.store(deepseek, 'sk-4'), store.path, 'a keyring that does not work is passed over');
  t.match(await fresh.find(deepseek), { key: 'sk-4' });
});

t.test('secret-tool gets the key on stdin, is read back, and may be missing or broken', async (t) => {
  const script = (body: string): string => `#!/bin/sh\necho "$@" >> "$0.args"\n${body}\n`;
  const works = 'case $1 in store) cat > "$0.key" ;; lookup) cat "$0.key" ;; clear) rm "$0.key" ;; esac';
  const bins = t.testdir({
    works: { 'secret-tool': script(works) },
    forgets: { 'secret-tool': script('cat > /dev/null') },
    fails: { 'secret-tool': script('exit 1') },
    none: {},
  });
  for (const name of ['works', 'forgets', 'fails']) chmodSync(join(bins, name, 'secret-tool'), 0o755);
  const keyringOf = (name: string): Keyring => secretToolKeyring({ PATH: [join(bins, name), '/bin', '/usr/bin'].join(delimiter) });
  const keyring = keyringOf('works');
  t.equal(await keyring.store(deepseek, 'sk-1'), true);
  t.equal(await keyring.find(deepseek), 'sk-1');
  const args = readFileSync(join(bins, 'works', 'secret-tool.args'), 'utf8');
  t.match(args, /^store --label=dsh-acp: key for https:\/\/api\.deepseek\.com service dsh-acp server https:\/\/api\.deepseek\.com\nlookup/);
  t.notMatch(args, /sk-1/);
  await keyring.remove(deepseek);
  t.equal(await keyring.find(deepseek), undefined);
  t.equal(await keyringOf('forgets').store(deepseek, 'sk-1'), false);
  t.equal(await keyringOf('fails').store(deepseek, 'sk-1'), false);
  const none = secretToolKeyring({ PATH: join(bins, 'none') });
  t.equal(await none.store(deepseek, 'sk-1'), false);
  t.equal(await none.find(deepseek), undefined);
});
