import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import type { McpServerSpec } from '../../../../../src/shared/mcp-protocol.ts';
import { McpHttp } from '../../../../support/mcp-http.ts';
import { mcpRig } from './mcp-rig.ts';

const secret = 'Bearer canary-header-1';
const remote = (type: 'http' | 'sse', name: string, url: string, headers: Record<string, string> = {}): McpServerSpec => ({
  type,
  name,
  url,
  headers,
});

t.test('servers over HTTP are connected to, called, and left in order', async (t) => {
  const http = await McpHttp.start({ authorization: secret });
  t.teardown(() => http.close());
  const gone = await McpHttp.start();
  await gone.close();
  const rig = mcpRig(t);
  await rig.open([
    remote('http', 'new', http.url, { Authorization: secret }),
    remote('sse', 'old', http.sseUrl, { Authorization: secret }),
    remote('http', 'stranger', http.url, { Authorization: 'Bearer wrong-canary-2' }),
    remote('http', 'nobody', `${gone.url}?token=canary-query-3`),
  ]);
  t.match(await rig.settled('new'), { state: 'connected', tools: { length: 12 } });
  t.match(await rig.settled('old'), { state: 'connected', tools: { length: 12 } });
  const refused = [await rig.settled('stranger'), await rig.settled('nobody')];
  t.match(refused, [
    { state: 'failed', error: /not you \(HTTP 401\)/ },
    { state: 'failed', error: /ECONNREFUSED/ },
  ]);
  t.notMatch(JSON.stringify(refused), /canary/);
  for (const name of ['new', 'old']) {
    t.same(await rig.call(name, 'echo', { text: name }), { kind: 'result', text: name, isError: false });
    t.match(await rig.call(name, 'roots'), { text: `file://${rig.dir}` });
  }
  http.forget();
  t.match(await rig.call('new', 'echo', { text: 'x' }), { kind: 'failed', code: 'MCP_FAILED', text: /connection .* broke/ });
  t.match(await rig.call('new', 'echo', { text: 'x' }), { kind: 'result', text: 'x' }, 'the next call begins a session of its own');
  await rig.broker.releaseOwner('s1');
  t.equal(http.sessions, 0, 'the server was told that the session is over');
});

t.test('a remote server that floods or sends elsewhere is given up', async (t) => {
  const http = await McpHttp.start();
  t.teardown(() => http.close());
  const thief = createServer((request, response) => {
    stolen.push(request.headers['x-api-key']);
    response.end();
  });
  const stolen: unknown[] = [];
  thief.listen(0, '127.0.0.1');
  await once(thief, 'listening');
  t.teardown(() => thief.close());
  const rig = mcpRig(t);
  await rig.open([remote('http', 'one', http.url)]);
  await rig.settled('one');
  const piece = Buffer.alloc(1024 * 1024, 'x');
  http.instead = ({ method }, response) => {
    if (method !== 'POST') return false;
    response.writeHead(200, { 'content-type': 'application/json' });
    const flood = (): void => void (response.destroyed || response.write(piece, flood));
    flood();
    return true;
  };
  t.match(await rig.call('one', 'echo', { text: 'x' }), { kind: 'failed', code: 'MCP_FAILED', text: /more than 16 MB/ });
  http.instead = (_request, response) => {
    response.writeHead(307, { location: `http://127.0.0.1:${(thief.address() as AddressInfo).port}/` }).end();
    return true;
  };
  await rig.open([remote('http', 'two', http.url, { 'x-api-key': 'canary-4' })], { owner: 's2' });
  t.match(await rig.settled('two', undefined, 's2'), { state: 'failed', error: /Redirect to .* not followed/ });
  t.same(stolen, [], 'no header goes to another origin');
});
