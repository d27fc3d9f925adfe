/** Which models a client may choose, and what they are counted at. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type ConfigRequest, loadConfig } from '../../../../src/main/config/load-config.ts';
import type { KeyName } from '../../../../src/main/config/schema.ts';

const key = { DEEPSEEK_API_KEY: 'sk-1' };

async function load(t: Test, flags: Partial<Record<KeyName, string>>, given: Partial<ConfigRequest> & { readonly toml?: string } = {}) {
  const { toml, ...more } = given;
  const home = t.testdir(toml === undefined ? {} : { 'config.toml': toml });
  return await loadConfig({
    env: {},
    home,
    cwd: home,
    flags: new Map(Object.entries(flags) as [KeyName, string][]),
    file: toml === undefined ? undefined : join(home, 'config.toml'),
    cores: 2,
    version: '1',
    ripgrepPath: undefined,
    ...more,
  });
}

const offered = async (...given: Parameters<typeof load>) => (await load(...given)).config.session.models;
const names = async (...given: Parameters<typeof load>) => (await offered(...given))?.map(({ name }) => name);

t.test('DeepSeek offers what it serves, another server only what is named, and a built-in model nothing', async (t) => {
  t.same(await names(t, {}, { env: key }), ['deepseek-v4-pro']);
  t.same(await names(t, { model: 'deepseek-v4-pro' }, { env: key }), ['deepseek-flash'], 'the configured one stands apart');
  t.same(await names(t, { models: '' }, { env: key }), [], 'empty leaves no choice');
  const own = { base_url: 'http://127.0.0.1:1/v1', model: 'a' };
  t.same(await names(t, own), []);
  t.same(await names(t, { ...own, dialect: 'deepseek' }), []);
  t.same(await names(t, { ...own, models: 'b, a,vendor/c:7b' }), ['b', 'vendor/c:7b']);
  t.same(await names(t, { model: 'scripted', models: 'b' }), []);
});

t.test('the file may hold an array or a text, and what is no list of names is refused', async (t) => {
  const inFile = (models: string) => ({ toml: `model = "a"\n[provider]\nbase_url = "http://127.0.0.1:1/v1"\nmodels = ${models}\n` });
  t.same(await names(t, {}, inFile('["b", "c"]')), ['b', 'c']);
  t.same(await names(t, {}, inFile('"b,c"')), ['b', 'c']);
  t.same(await names(t, {}, inFile('[]')), []);
  for (const wrong of ['["b", "b"]', '["b c"]', '[1]', '7', '["b,c"]', '"b,,c"'])
    await t.rejects(load(t, {}, inFile(wrong)), { code: 'CONFIG_INVALID', data: { key: 'models' } }, wrong);
  const many = Array.from({ length: 65 }, (_, index) => `m${index}`).join();
  await t.rejects(load(t, { models: many }), { code: 'CONFIG_INVALID' });
});

t.test(
  'a further model is counted as it is listed, an unknown one at the dearest that is known, and without prices nothing is',
  async (t) => {
    const own = {
      model: 'deepseek-flash',
      models: 'deepseek-v4-pro,unheard-of',
      price_input: '1',
      price_output: '9',
      price_cache_read: '0.01',
    };
    t.match(await offered(t, own, { env: key }), [
      { name: 'deepseek-v4-pro', prices: { input: 1.32, output: 3.96, cacheRead: 0.044, offPeak: { input: 0.66 } } },
      { name: 'unheard-of', prices: { input: 1.32, output: 9, cacheRead: 0.044, offPeak: undefined } },
    ]);
    const generic = { base_url: 'http://127.0.0.1:1/v1', model: 'a', models: 'b' };
    t.same(await offered(t, generic), [{ name: 'b', prices: undefined }]);
    t.match(await offered(t, { ...generic, price_input: '2', price_output: '3' }), [{ name: 'b', prices: { input: 2, output: 3 } }]);
  },
);

t.test('the setting is shown as it took effect', async (t) => {
  const { settings } = await load(t, {}, { env: key });
  t.match(
    settings.find(({ name }) => name === 'models'),
    { value: 'deepseek-v4-pro', source: 'default' },
  );
});
