import t from 'tap';
import { checkedMcpServers } from '../../../../src/main/acp/mcp-servers.ts';
import { ServerError } from '../../../../src/shared/errors.ts';

const canary = 'canary-4711';
const stdio = { name: 'files', command: '/usr/bin/files', args: ['--all'], env: [{ name: 'TOKEN', value: canary }] };
const http = { type: 'http', name: 'web', url: 'https://example.com/mcp', headers: [{ name: 'Authorization', value: `Bearer ${canary}` }] };

t.test('what a client gives becomes plain definitions', async (t) => {
  t.same(
    checkedMcpServers([
      stdio,
      http,
      { ...http, type: 'sse', name: 'old', headers: null },
      { name: 'bare', command: 'npx', args: null, env: null },
    ]),
    [
      { type: 'stdio', name: 'files', command: '/usr/bin/files', args: ['--all'], env: { TOKEN: canary } },
      { type: 'http', name: 'web', url: 'https://example.com/mcp', headers: { Authorization: `Bearer ${canary}` } },
      { type: 'sse', name: 'old', url: 'https://example.com/mcp', headers: {} },
      { type: 'stdio', name: 'bare', command: 'npx', args: [], env: {} },
    ],
  );
  t.same(checkedMcpServers([]), []);
});

t.test('what is wrong is named by its place, and never by its value', async (t) => {
  const cases: [string, unknown[]][] = [
    ['', Array.from({ length: 33 }, (_, index) => ({ ...stdio, name: `n${index}` }))],
    ['[0]', [5]],
    ['[1].name', [stdio, { ...http, name: 'files' }]],
    ['[0].name', [{ ...stdio, name: '' }]],
    ['[0].name', [{ ...stdio, name: `a\u202e${canary}` }]],
    ['[0].name', [{ ...stdio, name: 'x'.repeat(101) }]],
    ['[0].type', [{ ...stdio, type: 'acp' }]],
    ['[0].command', [{ ...stdio, command: `./${canary}` }]],
    ['[0].command', [{ ...stdio, command: `bin/${canary}` }]],
    ['[0].command', [{ ...stdio, command: '..' }]],
    ['[0].command', [{ ...stdio, command: '' }]],
    ['[0].command', [{ ...stdio, command: `/bin/${canary}\0` }]],
    ['[0].args[1]', [{ ...stdio, args: ['a', 5] }]],
    ['[0].args', [{ ...stdio, args: canary }]],
    ['[0].args[0]', [{ ...stdio, args: [canary.repeat(20_000)] }]],
    ['[0].env[0].name', [{ ...stdio, env: [{ name: `A=${canary}`, value: '' }] }]],
    ['[0].env[0].name', [{ ...stdio, env: [{ name: '__proto__', value: '' }] }]],
    ['[0].env[0].value', [{ ...stdio, env: [{ name: 'A', value: 7 }] }]],
    ['[0].url', [{ ...http, url: `file:///${canary}` }]],
    ['[0].url', [{ ...http, url: canary }]],
    ['[0].url', [{ ...http, url: `https://user:${canary}@example.com/` }]],
    ['[0].url', [{ ...http, url: `javascript:${canary}` }]],
    ['[0].headers[0].name', [{ ...http, headers: [{ name: `X ${canary}`, value: 'a' }] }]],
    ['[0].headers[0].value', [{ ...http, headers: [{ name: 'X', value: `a\r\n${canary}` }] }]],
    ['', Array.from({ length: 20 }, (_, index) => ({ ...stdio, name: `n${index}`, args: ['x'.repeat(100_000)] }))],
  ];
  for (const [place, servers] of cases) {
    try {
      checkedMcpServers(servers);
      t.fail(`${place} was taken`);
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      t.equal(error.code, 'INVALID_PARAMS');
      t.same(error.data, { field: `mcpServers${place}` });
      t.ok(error.message.startsWith(`mcpServers${place} `), error.message);
      t.notMatch(error.message, canary);
    }
  }
});
