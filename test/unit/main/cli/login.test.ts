/** `dsh-acp login` and `logout`, in this process, against a local server that knows one key. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import t, { type Test } from 'tap';
import { runLogin } from '../../../../src/main/cli/login-command.ts';
import { runLogout } from '../../../../src/main/cli/logout-command.ts';
import { loadConfig } from '../../../../src/main/config/load-config.ts';
import type { KeyName } from '../../../../src/main/config/schema.ts';
import { KeyStore } from '../../../../src/main/credentials/key-store.ts';

const goodKey = 'sk-good-0123456789';

interface Api {
  readonly url: string;
  status: number | undefined;
  readonly seen: string[];
}

async function startApi(t: Test): Promise<Api> {
  const api: { url: string; status: number | undefined; seen: string[] } = { url: '', status: undefined, seen: [] };
  const server = createServer((request, response) => {
    api.seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    const status = api.status ?? (request.headers.authorization === `Bearer ${goodKey}` ? 200 : 401);
    response.writeHead(status, { 'content-type': 'application/json', location: 'http://127.0.0.1:1/' }).end('{"data":[]}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  api.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return api;
}

/** A terminal that a test types into. */
class Terminal extends PassThrough {
  readonly isTTY = true;
  readonly raw: boolean[] = [];

  setRawMode(on: boolean): void {
    this.raw.push(on);
  }
}

interface Run {
  readonly code: number;
  readonly printed: string;
  readonly said: string;
}

class LoginRig {
  readonly home: string;
  readonly keys: KeyStore;
  readonly #url: string;

  constructor(t: Test, url: string) {
    this.home = t.testdir({});
    this.#url = url;
    const keyring = { store: async () => false, find: async () => undefined, remove: async () => undefined };
    this.keys = new KeyStore(join(this.home, '.config', 'dsh-acp', 'credentials.json'), async () => keyring);
  }

  async load(env: Record<string, string> = {}, flags: Partial<Record<KeyName, string>> = {}) {
    return await loadConfig({
      env: { DEEPSEEK_BASE_URL: this.#url, ...env },
      home: this.home,
      cwd: this.home,
      flags: new Map(Object.entries(flags) as [KeyName, string][]),
      file: undefined,
      cores: 2,
      version: '1',
      ripgrepPath: undefined,
      storedKey: (baseUrl) => this.keys.has(baseUrl),
    });
  }

  /** `typed` goes to a terminal, an answer a question; `piped` is what stdin holds. */
  async login(given: {
    typed?: string[];
    piped?: string;
    env?: Record<string, string>;
    flags?: Partial<Record<KeyName, string>>;
  }): Promise<Run> {
    const { typed, piped, env, flags } = given;
    const input = typed === undefined ? new PassThrough() : new Terminal();
    if (typed === undefined) input.end(piped ?? '');
    const answers = [...(typed ?? [])];
    let printed = '';
    let said = '';
    const code = await runLogin({
      loaded: await this.load(env, flags),
      keys: this.keys,
      fromStdin: piped !== undefined,
      input,
      print: (text) => (printed += text),
      say: (text) => {
        said += text;
        if (/[:\]] $/.test(text)) input.write(answers.shift() ?? '');
      },
    });
    return { code, printed, said };
  }

  async logout(env: Record<string, string> = {}): Promise<Run> {
    let printed = '';
    let said = '';
    const say = (text: string) => void (said += text);
    const code = await runLogout({ loaded: await this.load(env), keys: this.keys, print: (text) => (printed += text), say });
    return { code, printed, said };
  }
}

t.test('the key is asked for without an echo, tried with one GET, stored and used; logout forgets it', async (t) => {
  const api = await startApi(t);
  const rig = new LoginRig(t, api.url);
  t.equal((await rig.load()).config.session.model.kind, 'scripted');
  // A letter too much, taken back, as a person does.
  const { code, printed, said } = await rig.login({ typed: [`${goodKey}x\u007f\r`] });
  t.equal(code, 0, said);
  t.equal(printed, `The key for ${api.url} is stored in ${rig.keys.path}.\n`);
  t.equal(said, `API key for ${api.url} (it is not shown): \n`, 'nothing of the key is on the screen');
  t.same(api.seen, [`GET /models Bearer ${goodKey}`]);
  t.match(await rig.keys.find(api.url), { key: goodKey });
  const { choice, config } = await rig.load();
  t.match(choice, { why: 'there is a stored key', model: { kind: 'openai-compatible', model: 'deepseek-flash', apiKey: undefined } });
  t.notMatch(JSON.stringify(config), /sk-good/, 'the settings do not hold it');
  t.same(await rig.logout(), { code: 0, printed: `The stored key for ${api.url} is removed.\n`, said: '' });
  t.match(await rig.logout(), { code: 0, printed: /no stored key/ });
  t.notOk(existsSync(rig.keys.path));
});

t.test('a key that is refused, empty or no key at all is not stored', async (t) => {
  const api = await startApi(t);
  const rig = new LoginRig(t, api.url);
  t.match(await rig.login({ typed: ['sk-bad\r'] }), { code: 1, printed: '', said: /refuses this key \(status 401\); nothing is stored/ });
  t.match(await rig.login({ typed: ['\r'] }), { code: 1, said: /no key was given/ });
  t.match(await rig.login({ typed: ['two words\r'] }), { code: 1, said: /that is no key/ });
  for (const giveUp of ['sk-go\u0003', '\u0004']) t.match(await rig.login({ typed: [giveUp] }), { code: 1, said: /no key was given/ });
  t.match(await rig.login({ piped: 'x'.repeat(20_000) }), { code: 1, said: /that is no key/ });
  t.equal(api.seen.length, 1, 'only a key goes to the server');
  t.notOk(existsSync(rig.keys.path));
});

t.test('a server that cannot be asked is no refusal: the person decides, and a pipe stores', async (t) => {
  const api = await startApi(t);
  const rig = new LoginRig(t, api.url);
  api.status = 503;
  const no = await rig.login({ typed: [`${goodKey}\r`, '\r'] });
  t.match(no, { code: 1, said: /could not be tried.*status 503.*\[y\/N\] [^]*nothing is stored/ });
  t.match(await rig.login({ typed: [`${goodKey}\r`, 'y\r'] }), { code: 0, printed: /is stored/ });
  api.status = 302;
  t.match(await rig.login({ piped: `${goodKey}\n` }), { code: 0, said: /status 302.*stored all the same/ }, 'a redirect is not followed');
  const gone = new LoginRig(t, 'http://127.0.0.1:1');
  t.match(await gone.login({ piped: goodKey }), { code: 0, said: /ECONNREFUSED/ });
});

t.test('without a terminal it says what to do, and where a key has no use it says that', async (t) => {
  const api = await startApi(t);
  const rig = new LoginRig(t, api.url);
  let said = '';
  const loaded = await rig.load();
  const input = new PassThrough().end();
  const code = await runLogin({
    loaded,
    keys: rig.keys,
    fromStdin: false,
    input,
    print: () => undefined,
    say: (text) => void (said += text),
  });
  t.equal(code, 1);
  t.match(said, /on a terminal, and this is none.*--key-stdin/);
  t.match(await rig.login({ piped: goodKey, flags: { model: 'scripted' } }), { code: 1, said: /needs no key/ });
  const local = await rig.login({ piped: goodKey, flags: { base_url: `${api.url}/v1`, model: 'qwen3' } });
  t.match(local, { code: 0, printed: new RegExp(`for ${api.url}/v1 is stored`) });
  t.match(JSON.parse(readFileSync(rig.keys.path, 'utf8')).keys, { [`${api.url}/v1`]: { key: goodKey } }, 'for that server alone');
  t.match(await rig.keys.find(api.url), { kind: 'none' });
  t.match(await rig.login({ piped: goodKey, env: { DEEPSEEK_API_KEY: 'sk-env' } }), { code: 0, said: /DEEPSEEK_API_KEY goes before it/ });
  t.match(await rig.logout({ DEEPSEEK_API_KEY: 'sk-env' }), { code: 0, said: /still a key in DEEPSEEK_API_KEY/ });
});
