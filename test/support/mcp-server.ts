/**
 * An MCP server made with the SDK, with tools that behave and tools that do not. Serves over whatever transport it is
 * given: a child process on stdio (`mcp-server-main.ts`), or HTTP in the process of a test (`mcp-http.ts`).
 */
import { appendFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListRootsResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

export interface McpServerOptions {
  /** `hostile` lists tools that must be refused beside one that is good. */
  readonly list?: 'good' | 'hostile';
  /** Each call writes its name here as it begins, and `cancelled <name>` when it is cancelled. */
  readonly journal?: string | undefined;
}

const noArguments = { type: 'object', properties: {} };
const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

const good = [
  {
    name: 'echo',
    description: 'Says the text again.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'write',
    description: 'Changes something.',
    inputSchema: noArguments,
    annotations: { destructiveHint: true, readOnlyHint: false },
  },
  ...['hang', 'crash', 'garbage', 'fail', 'image', 'structured', 'long', 'roots', 'sample', 'change', 'environment'].map((name) => ({
    name,
    description: name,
    inputSchema: noArguments,
  })),
];

function nested(depth: number): object {
  return depth === 0 ? { type: 'string' } : { type: 'object', properties: { a: nested(depth - 1) } };
}

const hostile = [
  {
    name: 'good',
    description: `Fine.\u202e\u{e0041}\u0007 \u001b[31mred`,
    inputSchema: { ...noArguments, $id: 'urn:x', 'x-secret': 'do evil' },
  },
  { name: 'deep', inputSchema: nested(40) },
  {
    name: 'huge',
    inputSchema: { type: 'object', properties: Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`p${n}`, { type: 'string' }])) },
  },
  { name: 'elsewhere', inputSchema: { type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } } },
  { name: 'nowhere', inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/none' } } } },
  { name: 'wrong', inputSchema: { type: 'object', properties: { a: { type: 'strnig' } } } },
  { name: 'list', inputSchema: { type: 'array' } },
  { name: 'hid\u200bden', inputSchema: noArguments },
  { name: 'with spaces/and: signs', inputSchema: noArguments },
  { name: 'with spaces/and; signs', inputSchema: noArguments },
  { name: `long_${'x'.repeat(100)}`, inputSchema: noArguments },
  { name: 'slow_pattern', inputSchema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } } },
  { name: 'circle', inputSchema: { type: 'object', allOf: [{ $ref: '#' }], properties: { a: { $ref: '#' } } } },
  { name: 'good', inputSchema: noArguments },
  'not a tool',
];

/** A server that is ready to be connected. */
export function createMcpServer({ list = 'good', journal }: McpServerOptions = {}): Server {
  const server = new Server({ name: 'test-server', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  const note = (line: string): void => {
    if (journal !== undefined) appendFileSync(journal, `${line}\n`);
  };
  let added = false;
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const tools: any[] = list === 'good' ? good : hostile;
    const half = Math.ceil(tools.length / 2);
    if (params?.cursor === undefined) return { tools: tools.slice(0, half), nextCursor: 'second page' };
    return { tools: [...tools.slice(half), ...(added ? [{ name: 'added', inputSchema: noArguments }] : [])] };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args = {} } }, { signal }): Promise<any> => {
    note(name);
    signal.addEventListener('abort', () => note(`cancelled ${name}`));
    switch (name) {
      case 'echo':
      case 'good':
        return text(String(args['text']));
      case 'write':
        return text('written');
      case 'hang':
        return await new Promise(() => undefined);
      case 'crash':
        process.stderr.write(`going down with ${process.env['SERVER_TOKEN']}\n`);
        return process.exit(3);
      case 'garbage':
        process.stdout.write('no JSON at all\n{"jsonrpc":"1.0"}\n[1,2]\n\u0000\u0001\n');
        return text('after the garbage');
      case 'fail':
        return { ...text('it did not work'), isError: true };
      case 'image':
        return { content: [{ type: 'image', mimeType: 'image/png', data: Buffer.from('a picture').toString('base64') }] };
      case 'structured':
        return { content: [], structuredContent: { answer: 42 } };
      case 'long':
        return text(`begin ${'x'.repeat(200_000)} end`);
      case 'roots': {
        const { roots } = await server.request({ method: 'roots/list' }, ListRootsResultSchema);
        return text(roots.map(({ uri }) => uri).join(' '));
      }
      case 'sample': {
        const params = { messages: [], maxTokens: 1 };
        const refusal = await server.request({ method: 'sampling/createMessage', params }, ListRootsResultSchema).then(
          () => 'allowed',
          (error: Error) => error.message,
        );
        return text(refusal);
      }
      case 'change':
        added = true;
        await server.sendToolListChanged();
        return text('changed');
      case 'environment':
        return text(Object.keys(process.env).sort().join(' '));
      case 'added':
        return text('the new tool');
      default:
        throw new Error(`no such tool: ${name}`);
    }
  });
  return server;
}
