import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import t, { type Test } from 'tap';
import { settingsTable } from '../../../../src/main/config/docs-table.ts';
import { flagOf, placeOf, variableOf } from '../../../../src/main/config/key-spelling.ts';
import { type ConfigRequest, loadConfig } from '../../../../src/main/config/load-config.ts';
import { configKeys, type KeyName, keyNames, specOf } from '../../../../src/main/config/schema.ts';

interface Case {
  readonly env?: Record<string, string>;
  readonly flags?: Partial<Record<KeyName, string>>;
  readonly toml?: string;
  readonly mode?: number;
  readonly file?: string;
  readonly cores?: number;
}

function request(t: Test, given: Case): ConfigRequest {
  const home = t.testdir({ '.config': { 'dsh-acp': given.toml === undefined ? {} : { 'config.toml': given.toml } } });
  if (given.toml !== undefined) chmodSync(join(home, '.config/dsh-acp/config.toml'), given.mode ?? 0o600);
  return {
    env: given.env ?? {},
    home,
    cwd: home,
    flags: new Map(Object.entries(given.flags ?? {}) as [KeyName, string][]),
    file: given.file,
    cores: given.cores ?? 4,
    version: '9.9.9',
    ripgrepPath: undefined,
  };
}

const load = async (t: Test, given: Case) => await loadConfig(request(t, given));

async function refuses(t: Test, given: Case, data: Record<string, unknown>, message?: RegExp): Promise<void> {
  const error: any = await load(t, given).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  t.equal(error?.code, 'CONFIG_INVALID');
  t.match(error?.data, data);
  if (message !== undefined) t.match(error?.message, message);
}

t.test('without any setting the defaults stand', async (t) => {
  const { config, choice, file } = await load(t, {});
  t.equal(config.profile, 'editor');
  t.equal(config.isolation, 'dedicated');
  t.equal(config.maxThreads, 64);
  t.equal(config.spareThreads, 2);
  t.equal(config.maxFrameBytes, 33_554_432);
  t.equal(config.agentName, 'deepseek-harness-acp');
  t.equal(config.agentVersion, '9.9.9');
  t.match(config.stateDir, /\.local\/state\/dsh-acp$/);
  t.match(config.session.budget, { maxSteps: 200, maxToolCalls: 1000, maxTokens: 0, maxWallMs: 0 });
  t.equal(config.session.model.kind, 'scripted');
  t.match(choice.why, /DEEPSEEK_API_KEY is not set/);
  t.equal(file?.found, false);
});

t.test('automation is shared on as many threads as cores, at least two, and has a wall budget', async (t) => {
  const { config } = await load(t, { flags: { profile: 'automation' }, cores: 1 });
  t.match(config, { isolation: 'shared', maxThreads: 2, spareThreads: 0 });
  t.equal(config.session.budget.maxWallMs, 3_600_000);
  t.equal(config.limiter.maxPauseMs, 900_000);
  t.equal((await load(t, {})).config.limiter.maxPauseMs, 60_000);
  const patient = await load(t, { flags: { model: 'm', base_url: 'http://127.0.0.1:1', max_retry_after_ms: '7' } });
  t.notOk('sampling' in patient.config.session.model, 'nothing is sent that nobody asked for');
  const model = { model: 'm', base_url: 'http://127.0.0.1:1' };
  const exact = await load(t, { flags: { ...model, temperature: '0', top_p: '0.95', seed: '9007199254740991' } });
  t.match(exact.config.session.model, { sampling: { temperature: 0, topP: 0.95, seed: Number.MAX_SAFE_INTEGER } });
  await t.rejects(load(t, { flags: { ...model, temperature: '2.1' } }), { code: 'CONFIG_INVALID' });
  t.match(patient.config, { limiter: { maxPauseMs: 7 }, session: { model: { maxRetryAfterMs: 7 } } }, 'one setting for both');
  t.equal((await load(t, { flags: { profile: 'automation', isolation: 'strict' }, cores: 1 })).config.maxThreads, 64);
});

t.test('a flag wins over a variable, a variable over the file, the file over the default', async (t) => {
  const toml = '[threads]\nmax_threads = 3\nspare_threads = 1\n[limits]\noverlap = "reject"\n';
  const { config, settings } = await load(t, {
    toml,
    env: { DSH_ACP_MAX_THREADS: '5', DSH_ACP_SPARE_THREADS: '0' },
    flags: { max_threads: '7' },
  });
  t.match(config, { maxThreads: 7, spareThreads: 0, overlap: 'reject' });
  const origin = (name: KeyName) => settings.find((setting) => setting.name === name)?.source;
  t.same(
    ['max_threads', 'spare_threads', 'overlap', 'profile'].map((name) => origin(name as KeyName)),
    ['flag', 'env', 'file', 'default'],
  );
});

t.test('the four keys of the specification may be spelled in camel case', async (t) => {
  const { config } = await load(t, { toml: 'systemPrompt = "Be brief."\nagentName = "n"\nagentVersion = "1.2"\nmodel = "scripted"\n' });
  t.match(config, { agentName: 'n', agentVersion: '1.2', session: { systemPrompt: 'Be brief.' } });
  await refuses(t, { toml: 'agentName = "a"\nagent_name = "b"\n' }, { key: 'agent_name' }, /one spelling/);
});

t.test('an unknown or misplaced key of the file is named with what was meant', async (t) => {
  await refuses(t, { toml: '[threads]\nmax_treads = 3\n' }, { key: 'max_treads', suggestion: '[threads] max_threads' });
  await refuses(
    t,
    { toml: 'max_threads = 3\n' },
    { key: 'max_threads', suggestion: '[threads] max_threads' },
    /expected it in \[threads\]/,
  );
  await refuses(t, { toml: '[limits]\nmodel = "scripted"\n' }, { key: 'model', expected: 'it at the top of the file' });
  await refuses(t, { toml: '[thread]\nmax_threads = 3\n' }, { key: 'thread', suggestion: 'threads' });
  await refuses(t, { toml: 'threads = 3\n' }, { key: 'threads', came: '3' });
  await refuses(t, { toml: '[constructor]\na = 1\n' }, { key: 'constructor' });
});

t.test('a wrong type or a value out of range is refused in every place', async (t) => {
  await refuses(t, { toml: '[threads]\nmax_threads = "3"\n' }, { key: 'max_threads', came: '"3"' });
  await refuses(t, { toml: '[threads]\nmax_threads = 2.5\n' }, { came: '2.5' });
  await refuses(t, { toml: 'profile = true\n' }, { key: 'profile', came: 'true' });
  await refuses(t, { env: { DSH_ACP_MAX_THREADS: '0' } }, { where: 'DSH_ACP_MAX_THREADS', expected: 'a whole number from 1 to 1024' });
  await refuses(t, { flags: { max_threads: '1e3' } }, { where: '--max-threads', came: '"1e3"' });
  await refuses(t, { flags: { profile: 'editr' } }, { suggestion: 'editor' });
  await refuses(t, { flags: { model: 'replay:relative' } }, { key: 'model' });
  await refuses(t, { toml: 'state_dir = "relative"\n' }, { key: 'state_dir' });
});

t.test('an unknown variable with our prefix is refused, an empty one counts as not set', async (t) => {
  await refuses(t, { env: { DSH_ACP_PROFIL: 'editor' } }, { key: 'DSH_ACP_PROFIL', suggestion: 'DSH_ACP_PROFILE' });
  t.equal((await load(t, { env: { DSH_ACP_PROFILE: '', OTHER_ACP_X: '1' } })).config.profile, 'editor');
});

t.test('a named file must exist, and broken TOML is named by line without being quoted', async (t) => {
  await refuses(t, { file: 'missing.toml' }, { key: 'config', where: '--config' }, /there is no such file/);
  await refuses(t, { env: { DSH_ACP_CONFIG: '/missing.toml' } }, { where: 'DSH_ACP_CONFIG' });
  await refuses(t, { file: '.' }, { key: 'config' }, /something else/);
  await refuses(t, { toml: '[provider]\napi_key = "sk-secret\n' }, { where: /config\.toml:2:/ });
  const error: any = await load(t, { toml: '[provider]\napi_key = "sk-secret\n' }).catch((caught) => caught);
  t.notMatch(JSON.stringify([error.message, error.data]), /sk-secret/);
});

t.test('a key in the file needs mode 0600, and no wrong key is ever shown', async (t) => {
  const toml = '[provider]\napi_key = "sk-secret-1"\n';
  await refuses(t, { toml, mode: 0o644 }, { key: 'api_key', came: '"0644"' }, /chmod 600/);
  const { config } = await load(t, { toml });
  t.match(config.session.model, { kind: 'openai-compatible', apiKey: 'sk-secret-1', model: 'deepseek-flash' });
  for (const given of [{ env: { DSH_ACP_API_KEY: 'sk secret' } }, { env: { DEEPSEEK_API_KEY: 'sk\nsecret' } }]) {
    const error: any = await load(t, given).catch((caught) => caught);
    t.equal(error.code, 'CONFIG_INVALID');
    t.notMatch(JSON.stringify([error.message, error.data]), /secret/);
  }
});

t.test('the model is what is configured, else DeepSeek when there is a key, else scripted', async (t) => {
  const key = { DEEPSEEK_API_KEY: 'sk-1' };
  const model = async (given: Case) => (await load(t, given)).config.session.model;
  t.match(await model({ env: key }), {
    dialect: 'deepseek',
    baseUrl: 'https://api.deepseek.com',
    model: 'deepseek-flash',
    apiKey: 'sk-1',
    contextWindow: 1_000_000,
    maxOutputTokens: 256_000,
  });
  t.match(await model({ env: { ...key, DEEPSEEK_BASE_URL: 'http://127.0.0.1:9/' } }), {
    dialect: 'deepseek',
    baseUrl: 'http://127.0.0.1:9',
  });
  t.match(await model({ env: key, flags: { model: 'scripted', pace_ms: '3' } }), { kind: 'scripted', paceMs: 3 });
  t.match(await model({ flags: { model: 'replay:/a/b' } }), { kind: 'replay', path: '/a/b' });
  t.match(await model({ flags: { model: 'deepseek-v4-pro' } }), { model: 'deepseek-v4-pro', apiKey: undefined });
  t.match(await model({ env: { DEEPSEEK_API_KEY: ' ' } }), { kind: 'scripted' });
  await refuses(t, { flags: { base_url: 'http://127.0.0.1:1/v1' } }, { key: 'model' });
  await refuses(t, { env: { ...key, DEEPSEEK_BASE_URL: 'ftp://x' } }, { key: 'DEEPSEEK_BASE_URL' });
});

t.test("the DeepSeek key is not sent to somebody else's server unless it is named for it", async (t) => {
  const env = { DEEPSEEK_API_KEY: 'sk-1', OTHER_KEY: 'sk-2' };
  const flags = { base_url: 'https://example.org/v1', model: 'm' };
  t.match((await load(t, { env, flags })).config.session.model, { dialect: 'generic', apiKey: undefined, contextWindow: 128_000 });
  t.match((await load(t, { env, flags: { ...flags, api_key_env: 'OTHER_KEY' } })).config.session.model, { apiKey: 'sk-2' });
  t.match((await load(t, { env, flags: { ...flags, base_url: 'https://notdeepseek.com' } })).config.session.model, { apiKey: undefined });
  t.match((await load(t, { env, flags: { ...flags, base_url: 'https://api.deepseek.com' } })).config.session.model, { apiKey: 'sk-1' });
});

t.test('a URL with a password is refused and not shown', async (t) => {
  const error: any = await load(t, { flags: { base_url: 'https://me:hunter2@example.org', model: 'm' } }).catch((caught) => caught);
  t.equal(error.code, 'CONFIG_INVALID');
  t.notMatch(JSON.stringify([error.message, error.data]), /hunter2/);
});

t.test('any integer in range is taken as it is from every place, any other is refused', async (t) => {
  const base = request(t, {});
  const file = join(base.home, 'property.toml');
  const integers = keyNames.filter((name) => configKeys[name].type.kind === 'integer');
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...integers),
      fc.integer({ min: -10, max: 2 ** 31 }),
      fc.constantFrom('flag', 'env', 'file'),
      async (name, value, place) => {
        const { type, section } = specOf(name);
        if (type.kind !== 'integer') return false;
        writeFileSync(file, `${section === '' ? '' : `[${section}]\n`}${name} = ${value}\n`);
        const result = loadConfig({
          ...base,
          flags: place === 'flag' ? new Map([[name, String(value)]]) : new Map(),
          env: place === 'env' ? { [variableOf(name)]: String(value) } : {},
          file: place === 'file' ? file : undefined,
        });
        const inRange = value >= type.min && value <= type.max;
        const settled = await result.then(
          ({ settings }) => settings.find((setting) => setting.name === name),
          (error) => error.code,
        );
        // Keys of a model server have no effect, and no value to show, with the scripted model.
        return inRange ? settled.value === value && settled.source === place : settled === 'CONFIG_INVALID';
      },
    ),
    { numRuns: 300 },
  );
});

t.test('the documentation holds the table of settings, and its spellings do not clash', async (t) => {
  const page = readFileSync('docs/configuration.md', 'utf8');
  const table = /<!-- settings: begin -->\n([\s\S]*)<!-- settings: end -->/.exec(page)?.[1];
  t.equal(table, settingsTable(), 'run: node dist/main/cli.js config --format markdown');
  const spellings = keyNames.flatMap((name) => [flagOf(name) ?? `no flag ${name}`, variableOf(name), placeOf(name)]);
  t.equal(new Set(spellings).size, spellings.length);
});
