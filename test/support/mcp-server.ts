/**
 * An MCP server made with the SDK, with tools that behave and tools that do not. Serves over whatever transport it is
 * given: a child process on stdio (`mcp-server-main.ts`), or HTTP in the process of a test (`mcp-http.ts`).
 */
import { appendFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { good, noArguments } from './mcp-tool-lists.ts';
import { CallToolRequestSchema, ListRootsResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

export interface McpServerOptions {
  /** Each call writes its name here as it begins, and `cancelled <name>` when it is cancelled. */
  readonly journal?: string | undefined;
}

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

/** A server that is ready to be connected. */
export function createMcpServer({ journal }: McpServerOptions = {}): Server {
  const server = new Server({ name: 'test-server', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  const note = (line: string): void => {
    if (journal !== undefined) appendFileSync(journal, `${line}\n`);
  };
  let added = false;
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    if (params?.cursor === undefined) return { tools: good.slice(0, 5), nextCursor: 'second page' };
    return { tools: [...good.slice(5), ...(added ? [{ name: 'added', inputSchema: noArguments }] : [])] };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args = {} } }, { signal }): Promise<any> => {
    note(name);
    signal.addEventListener('abort', () => note(`cancelled ${name}`));
    switch (name) {
      case 'echo':
        return text(String(args['text']));
      case 'write':
        return text('written');
      case 'hang':
        return await new Promise(() => undefined);
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
