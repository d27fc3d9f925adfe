/**
 * Two sessions as a person in an editor has them, over the real server: with every kind of card that the page of a session shows. The
 * first is played by the built-in scripted model, the second by a recorded one that calls a tool of an MCP server and sets priorities.
 */
import { cpSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { ModelServer } from './model-server.ts';
import { type Frame, projectRoot, ServerProcess } from './server-process.ts';

export interface EditorScene {
  readonly stateDir: string;
  /** Played by the scripted model. */
  readonly scripted: string;
  /** With an MCP server, a plan with priorities and an image. */
  readonly recorded: string;
}

const firstPrompt = `[Items with exactly their minimum are not ordered again. Find out why.]
think The stock rules are in src/stock.js, so I look there first. The tests will tell which of them is broken.
say I read the project and run its tests.
todo *Read the rules and run the tests; Mend the comparison; Run the tests again
read README.md
& read src/stock.js from 1 to 20
grep minimum in src
run node src/main.js stock.csv
run node --test --test-reporter=dot
say One test fails: an item with exactly its minimum is not ordered again.`;

const secondPrompt = `[Mend it.]
fail SERVER 1
say I mend the comparison, and run the tests again.
edit src/stock.js /item.quantity < item.minimum/item.quantity <= item.minimum/
run node --test --test-reporter=dot
run rm -rf node_modules
todo x Read the rules and run the tests; x Mend the comparison; x Run the tests again
say The comparison takes in the minimum itself, and the tests pass.`;

const thirdPrompt = `[Find out who uses it, and write that down.]
delegate self <<EOF
grep toReorder
say toReorder is used in src/report.js and in the tests.
EOF
write notes.md <<EOF
# Notes

The comparison takes in the minimum itself.
EOF
say The notes are in notes.md.`;

/** Allows what is asked, but for one command. */
function answer({ params }: Frame): unknown {
  const kind = /rm -rf/.test(params.toolCall.title ?? '') ? 'reject_once' : 'allow_once';
  const option = params.options.find((one: { kind: string }) => one.kind === kind);
  return { outcome: { outcome: 'selected', optionId: option.optionId } };
}

/** @param dir an empty directory, for workspaces and state */
export async function playEditorScene(dir: string): Promise<EditorScene> {
  const stateDir = join(dir, 'state');
  const scripted = await playScripted(stateDir, workspace(dir, 'inventory'));
  const recorded = await playRecorded(stateDir, workspace(dir, 'stock-page'));
  return { stateDir, scripted, recorded };
}

function workspace(dir: string, name: string): string {
  const cwd = join(dir, name);
  mkdirSync(cwd, { recursive: true });
  cpSync(join(projectRoot, 'examples/inventory'), cwd, { recursive: true });
  return realpathSync.native(cwd);
}

async function playScripted(stateDir: string, cwd: string): Promise<string> {
  const server = new ServerProcess({ stateDir, args: ['--model', 'scripted', '--pace-ms', '0', '--sandbox', 'off'], onRequest: answer });
  try {
    await server.initialize();
    const sessionId = await server.newSession(cwd);
    await server.prompt(sessionId, firstPrompt);
    await server.request('session/set_mode', { sessionId, modeId: 'accept-edits' });
    await server.prompt(sessionId, secondPrompt);
    await server.prompt(sessionId, thirdPrompt);
    await server.prompt(sessionId, '/undo');
    await server.prompt(sessionId, '/cost');
    return sessionId;
  } finally {
    await server.close();
  }
}

async function playRecorded(stateDir: string, cwd: string): Promise<string> {
  const model = await ModelServer.start();
  const todos = [
    { content: 'Ask the catalogue what the item is called', status: 'completed', priority: 'high' },
    { content: 'Put the name on the page', status: 'in_progress' },
    { content: 'Tidy up the style sheet', status: 'pending', priority: 'low' },
  ];
  model.enqueue(
    { text: ['I look at the sketch, ', 'and ask the catalogue.'], tools: [{ name: 'todo_write', arguments: JSON.stringify({ todos }) }] },
    { tools: [{ name: 'mcp__catalogue__echo', arguments: JSON.stringify({ text: 'M6 bolt, zinc-plated, 30 mm' }) }] },
    { text: ['It is the M6 bolt.'] },
  );
  const args = ['--base-url', model.baseUrl, '--model', 'deepseek-test', '--model-images', 'on', '--context-window', '65536'];
  const server = new ServerProcess({ stateDir, args, env: { DSH_ACP_API_KEY: 'none' }, onRequest: answer });
  try {
    await server.initialize();
    const main = join(projectRoot, 'build/test/support/mcp-server-main.js');
    const mcpServers = [{ name: 'catalogue', command: process.execPath, args: [main], env: [] }];
    const { result } = await server.request('session/new', { cwd, mcpServers });
    const { sessionId } = result;
    const image = { type: 'image', mimeType: 'image/png', data: sketch().toString('base64') };
    const text = { type: 'text', text: 'Which item is this? Put its name on the page.' };
    await server.request('session/prompt', { sessionId, prompt: [text, image] });
    return sessionId;
  } finally {
    await server.close();
    await model.close();
  }
}

/** A small PNG: a hexagon on a light ground. */
function sketch(): Buffer {
  const size = 120;
  const rows = Array.from({ length: size }, (_, y) => {
    const row = Buffer.alloc(1 + size * 3, 0xee);
    row[0] = 0;
    for (let x = 0; x < size; x += 1) {
      const [dx, dy] = [Math.abs(x - size / 2), Math.abs(y - size / 2)];
      const edge = Math.max(dx * 0.866 + dy / 2, dy);
      const hole = Math.hypot(dx, dy) < 20;
      if (edge < 46 && !hole) row.set(edge > 41 ? [70, 84, 104] : [142, 160, 184], 1 + x * 3);
    }
    return row;
  });
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const parts = [chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.concat(rows))), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...parts]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, crc]);
}

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
