/**
 * An MCP server as a child process. Arguments: what it is like, and the file of its journal.
 *
 * `good` is made with the SDK, as real ones are. The others speak the protocol by hand, so that a test can start many of
 * them: `plain` has the tools `echo`, `crash`, `hang` and `giant`; `hostile` lists what it should not.
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { hostile } from './mcp-tool-lists.ts';

const [mode = 'good', journal] = process.argv.slice(2);
note(`started ${process.pid}`);

function note(line: string): void {
  if (journal !== undefined) appendFileSync(journal, `${line}\n`);
}

switch (mode) {
  case 'silent':
    process.stdin.resume();
    break;
  case 'broken':
    process.stderr.write(`\u001b[31mcannot start\u001b[0m with ${process.env['SERVER_TOKEN']}\n`);
    process.exitCode = 1;
    break;
  case 'stubborn':
    // Neither the end of its input nor TERM ends it, and a child of its own has left the group.
    process.on('SIGTERM', () => undefined);
    setInterval(() => undefined, 1000);
    spawn('setsid', ['sleep', '1000'], { stdio: 'ignore', detached: true }).unref();
    servePlainly();
    break;
  case 'plain':
  case 'hostile':
    servePlainly();
    break;
  default: {
    const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
    const { createMcpServer } = await import('./mcp-server.ts');
    await createMcpServer({ journal }).connect(new StdioServerTransport());
  }
}

function servePlainly(): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const answer = (result: object): void => void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
    if (method === 'notifications/cancelled') note('cancelled');
    if (method === 'initialize') {
      answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'plain', version: '1' } });
    }
    if (method === 'tools/list') {
      const inputSchema = { type: 'object', properties: { text: { type: 'string' } } };
      if (mode === 'hostile') return answer({ tools: hostile });
      answer({ tools: ['echo', 'crash', 'hang', 'giant'].map((name) => ({ name, description: `Tool ${name}.`, inputSchema })) });
    }
    if (method === 'tools/call') call(params.name, params.arguments, answer);
  });
}

function call(name: string, args: { readonly text?: string }, answer: (result: object) => void): void {
  note(name);
  if (name === 'echo' || name === 'good') answer({ content: [{ type: 'text', text: String(args.text) }] });
  if (name === 'crash') {
    process.stderr.write(`going down with ${process.env['SERVER_TOKEN']}\n`);
    process.exit(3);
  }
  if (name === 'giant') {
    process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"');
    flood('x'.repeat(64 * 1024));
  }
}

/** Writes for ever, as fast as the reader takes it. */
function flood(piece: string): void {
  process.stdout.write(piece, () => flood(piece));
}
