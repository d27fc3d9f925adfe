import { chmodSync, lstatSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openCodeStore } from '../../../src/main/code-store.ts';

const code = Buffer.from('compiled code');
const soleFile = (folder: string): string => {
  const [name] = readdirSync(folder);
  return join(folder, name ?? '');
};

t.test('what one start wrote the next one reads, for the same build alone', (t) => {
  const cache = t.testdir();
  const env = { XDG_CACHE_HOME: cache };
  const store = openCodeStore(env, 'one');
  t.equal(store?.read(), undefined);
  store?.write(code);
  t.same(openCodeStore(env, 'one')?.read(), code);
  t.equal(openCodeStore(env, 'two')?.read(), undefined);
  const folder = join(cache, 'dsh-acp', 'code');
  t.equal(statSync(folder).mode & 0o777, 0o700);
  t.equal(statSync(soleFile(folder)).mode & 0o777, 0o600);
  t.end();
});

t.test('a file that is cut off, has a wrong byte or is no plain file of the user is not read', (t) => {
  const folder = t.testdir();
  const store = openCodeStore({ DSH_ACP_CODE_CACHE: folder }, 'b')!;
  store.write(code);
  const file = soleFile(folder);
  const good = readFileSync(file);
  for (let at = 0; at < good.length; at += 1) {
    const bad = Buffer.from(good);
    bad[at]! ^= 1;
    writeFileSync(file, bad);
    t.equal(store.read(), undefined, `byte ${at}`);
    writeFileSync(file, good.subarray(0, at));
    t.equal(store.read(), undefined, `cut at ${at}`);
  }
  writeFileSync(file, good);
  t.same(store.read(), code);
  chmodSync(file, 0o620);
  t.equal(store.read(), undefined, 'others may write it');
  chmodSync(file, 0o600);
  t.end();
});

t.test('no link is followed', { skip: process.platform === 'win32' }, (t) => {
  const folder = t.testdir();
  const store = openCodeStore({ DSH_ACP_CODE_CACHE: join(folder, 'code') }, 'b')!;
  store.write(code);
  const file = soleFile(join(folder, 'code'));
  renameSync(file, join(folder, 'elsewhere'));
  symlinkSync(join(folder, 'elsewhere'), file);
  t.equal(store.read(), undefined);
  store.write(code);
  t.same(store.read(), code, 'the link is replaced');
  t.notOk(lstatSync(file).isSymbolicLink());
  t.end();
});

t.test('nothing is kept when it is switched off, and without a folder for caches', (t) => {
  for (const chosen of ['off', 'relative/path']) t.equal(openCodeStore({ DSH_ACP_CODE_CACHE: chosen }, 'b'), undefined);
  t.equal(openCodeStore({ XDG_CACHE_HOME: 'relative' }, 'b'), undefined);
  t.end();
});

t.test('a folder that cannot be written is no fault', (t) => {
  const folder = join(t.testdir({ file: '' }), 'file');
  const store = openCodeStore({ DSH_ACP_CODE_CACHE: folder }, 'b')!;
  store.write(code);
  t.equal(store.read(), undefined);
  t.end();
});
