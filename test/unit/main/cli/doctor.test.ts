import { chmodSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { runDoctor } from '../../../../src/main/cli/doctor/doctor.ts';
import type { FoundKey } from '../../../../src/main/credentials/key-store.ts';
import { findModelServers } from '../../../../src/main/cli/doctor/find-model-servers.ts';
import { loadConfig } from '../../../../src/main/config/load-config.ts';
import type { KeyName } from '../../../../src/main/config/schema.ts';

type Answers = Record<string, { status?: number; json?: unknown; text?: string } | 'silent'>;

async function listen(t: Test, answers: Answers): Promise<{ port: number; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    const answer = answers[request.url ?? ''];
    if (answer === 'silent') return;
    response.statusCode = answer === undefined ? 404 : (answer.status ?? 200);
    response.end(answer?.text ?? JSON.stringify(answer?.json ?? { error: 'no' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

const models = (owner: string, ...ids: string[]) => ({
  json: { object: 'list', data: ids.map((id) => ({ id, object: 'model', owned_by: owner })) },
});

async function doctor(
  t: Test,
  flags: Partial<Record<KeyName, string>>,
  env: Record<string, string> = {},
  home = t.testdir({}),
  stored: FoundKey = { kind: 'none' },
) {
  let text = '';
  const load = async () =>
    await loadConfig({
      env,
      home,
      cwd: home,
      flags: new Map(Object.entries(flags) as [KeyName, string][]),
      file: undefined,
      cores: 2,
      version: '1',
      ripgrepPath: (await import('@vscode/ripgrep')).rgPath,
    });
  const code = await runDoctor(load, (part) => (text += part), { probes: [], keys: { find: async () => stored } });
  return { code, text };
}

t.test('model servers are known by the shape of their answers, and asked with GETs alone', async (t) => {
  const ollama = await listen(t, { '/api/version': { json: { version: '0.9' } }, '/v1/models': models('library', 'qwen3:8b') });
  const llama = await listen(t, { '/health': { json: { status: 'ok' } }, '/v1/models': models('llamacpp', 'a b.gguf') });
  const vllm = await listen(t, { '/v1/models': models('vllm', 'm1', 'm2') });
  const web = await listen(t, { '/health': { text: 'ok' }, '/v1/models': { text: '<html>' } });
  const silent = await listen(t, { '/v1/models': 'silent' });
  t.same(await findModelServers([{ product: 'LM Studio', port: silent.port }], 50), [], 'a silent port costs only the time limit');
  const found = await findModelServers(
    [
      { product: 'Ollama', port: ollama.port },
      { product: 'llama.cpp', port: llama.port },
      { product: 'vLLM', port: vllm.port },
      { product: 'llama.cpp', port: web.port },
      { product: 'Ollama', port: 1 },
    ],
    20_000,
  );
  t.same(
    found.map((server) => [server.product, server.models]),
    [
      ['Ollama', ['qwen3:8b']],
      ['llama.cpp', ['a b.gguf']],
      ['vLLM', ['m1', 'm2']],
    ],
  );
  for (const request of [...ollama.seen, ...llama.seen, ...vllm.seen, ...web.seen, ...silent.seen]) {
    t.equal(request.method, 'GET');
    t.equal(request.headers.authorization, undefined);
    t.equal(request.headers['content-length'], undefined);
  }
});

t.test('a reachable model passes and the key goes only into the header', async (t) => {
  const { port, seen } = await listen(t, { '/v1/models': models('x', 'm1') });
  const flags = { base_url: `http://127.0.0.1:${port}/v1`, model: 'm1', api_key_env: 'K' };
  const { code, text } = await doctor(t, flags, { K: 'sk-secret' });
  t.equal(code, 0);
  t.match(text, /^ok {3}model {6}m1 at/m);
  t.equal(seen[0]?.headers.authorization, 'Bearer sk-secret');
  t.notMatch(text, /sk-secret/);
  const other = await doctor(t, { ...flags, model: 'm2' }, { K: 'sk-secret' });
  t.equal(other.code, 0);
  t.match(other.text, /^warn model .*not in the server's list/m);
});

t.test('a refused key, a closed port and a missing key fail and say what to do', async (t) => {
  const { port } = await listen(t, { '/v1/models': { status: 401 } });
  const refused = await doctor(t, { base_url: `http://127.0.0.1:${port}/v1`, model: 'm', api_key_env: 'K' }, { K: 'sk-secret' });
  t.equal(refused.code, 1);
  t.match(refused.text, /fail model .*refused \(401\)\n +Check the key in K/);
  t.notMatch(refused.text, /sk-secret/);
  const closed = await doctor(t, { base_url: 'http://127.0.0.1:1/v1', model: 'm' });
  t.equal(closed.code, 1);
  t.match(closed.text, /not reached \(ECONNREFUSED\)/);
  const keyless = await doctor(t, { model: 'deepseek-flash' });
  t.equal(keyless.code, 1);
  t.match(keyless.text, /Set DEEPSEEK_API_KEY/);
});

t.test('a stored key is tried as any other, and the prices that hold are said with their day', async (t) => {
  const { port, seen } = await listen(t, { '/models': models('deepseek', 'deepseek-flash') });
  const flags = { model: 'deepseek-flash' };
  const env = { DEEPSEEK_BASE_URL: `http://127.0.0.1:${port}` };
  const found = await doctor(t, flags, env, t.testdir({}), { kind: 'key', key: 'sk-stored', from: 'the keyring' });
  t.equal(found.code, 0, found.text);
  t.equal(seen[0]?.headers.authorization, 'Bearer sk-stored');
  t.notMatch(found.text, /sk-stored/);
  t.match(found.text, /^ok {3}prices {5}\$ per million tokens: 0\.3 in, 1\.2 out.*off-peak 0\.15 in.*read 2026-\d\d-\d\d/m);
  const unusable = await doctor(t, flags, env, t.testdir({}), { kind: 'unusable', reason: '/c is not used: other users may read it' });
  t.match(unusable.text, /fail model .*\/c is not used: other users may read it\n.*dsh-acp login/);
  const { port: strict } = await listen(t, { '/models': { status: 401 } });
  const strictEnv = { DEEPSEEK_BASE_URL: `http://127.0.0.1:${strict}` };
  const refused = await doctor(t, flags, strictEnv, t.testdir({}), { kind: 'key', key: 'sk-stored', from: '/c' });
  t.match(refused.text, /refused \(401\)\n +It is the stored one, of \/c: run dsh-acp login again/);
});

t.test('a wrong setting is one failed check', async (t) => {
  const { code, text } = await doctor(t, { max_threads: 'many' });
  t.equal(code, 1);
  t.match(text, /^fail config {5}max_threads: expected a whole number/m);
});

t.test('the state directory must be a private, writable directory', async (t) => {
  const root = t.testdir({ open: {}, file: '' });
  chmodSync(join(root, 'open'), 0o755);
  t.match((await doctor(t, { state_dir: join(root, 'open') }, {}, root)).text, /warn state dir .*mode 0755/);
  chmodSync(join(root, 'open'), 0o700);
  t.match((await doctor(t, { state_dir: join(root, 'open') }, {}, root)).text, /ok {3}state dir {2}.*open\n/);
  t.match((await doctor(t, { state_dir: join(root, 'a/b/c') }, {}, root)).text, /ok {3}state dir .*will be made/);
  const bad = await doctor(t, { state_dir: join(root, 'file') }, {}, root);
  t.equal(bad.code, 1);
  t.match(bad.text, /fail state dir .*not a directory/);
});
