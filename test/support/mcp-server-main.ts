/**
 * An MCP server as a child process. Arguments: what it lists or how it misbehaves from the start, and the file of its journal.
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createMcpServer } from './mcp-server.ts';

const [mode = 'good', journal] = process.argv.slice(2);
if (journal !== undefined) appendFileSync(journal, `started ${process.pid}\n`);

switch (mode) {
  case 'silent':
    process.stdin.resume();
    setInterval(() => undefined, 1000);
    break;
  case 'broken':
    process.stderr.write(`cannot start with ${process.env['SERVER_TOKEN']}\n`);
    process.exitCode = 1;
    break;
  case 'stubborn':
    // Neither the end of its input nor TERM ends it, and a child of its own has left the group.
    process.on('SIGTERM', () => undefined);
    setInterval(() => undefined, 1000);
    spawn('setsid', ['sleep', '1000'], { stdio: 'ignore', detached: true }).unref();
    await createMcpServer({ journal }).connect(new StdioServerTransport());
    break;
  default:
    await createMcpServer({ list: mode === 'hostile' ? 'hostile' : 'good', journal }).connect(new StdioServerTransport());
}
