/** A broker with MCP servers that are real processes, for tests in one thread. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import type { JsonObject } from '../../../../../src/shared/errors.ts';
import type { McpCallResult, McpOpenRequest, McpServerSpec, McpServerStatus, McpTimes } from '../../../../../src/shared/mcp-protocol.ts';
import { markedProcesses } from '../../../../../src/shared/process-table.ts';
import type { SandboxSettings } from '../../../../../src/shared/sandbox.ts';
import { Broker } from '../../../../../src/worker/broker/broker.ts';

export const serverMain = fileURLToPath(new URL('../../../../support/mcp-server-main.js', import.meta.url));

export interface McpRig {
  readonly broker: Broker;
  readonly dir: string;
  readonly groups: ReadonlyMap<number, string>;
  /** Processes of this broker that live now. */
  living(): number[];
  stdio(name: string, mode?: string, more?: Partial<Extract<McpServerSpec, { type: 'stdio' }>>): McpServerSpec;
  /** What the server has written down. */
  journal(name: string): string[];
  open(servers: readonly McpServerSpec[], more?: Partial<Omit<McpOpenRequest, 'times'>> & { times?: Partial<McpTimes> }): Promise<void>;
  /** The server's status once it is none of `not`. */
  settled(name: string, not?: readonly string[], owner?: string): Promise<McpServerStatus>;
  /** The first status of the server that matches. */
  status(name: string, matches: (status: McpServerStatus) => boolean, owner?: string): Promise<McpServerStatus>;
  call(server: string, tool: string, args?: JsonObject, owner?: string): Promise<McpCallResult>;
}

let calls = 0;

export function mcpRig(t: Test, sandbox?: SandboxSettings): McpRig {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-acp-mcp-')));
  const groups = new Map<number, string>();
  const mark = `mark-${process.pid}-${Math.random().toString(36).slice(2)}`;
  const broker = new Broker({
    mark,
    ambient: { ...process.env, AMBIENT_TOKEN: 'ambient-canary-1' },
    withheldVariables: ['HARMLESS_LOOKING'],
    ...(sandbox === undefined ? {} : { sandbox }),
    onGroupStarted: (pgid, owner) => groups.set(pgid, owner),
    onGroupEnded: (pgid) => groups.delete(pgid),
  });
  t.teardown(async () => {
    await broker.shutdown();
    rmSync(dir, { recursive: true, force: true });
  });
  const status: McpRig['status'] = async (name, matches, owner = 's1') => {
    const deadline = performance.now() + 15_000;
    for (let seq = 0; ; ) {
      const news = await broker.awaitMcp(owner, seq, 1000);
      const found = news.servers.find((server) => server.name === name);
      if (found !== undefined && matches(found)) return found;
      if (news.closed === true || performance.now() > deadline) throw new Error(`${name} is ${JSON.stringify(found)}`);
      seq = news.seq;
    }
  };
  return {
    broker,
    dir,
    groups,
    living: () => markedProcesses(`${mark}/`).map(({ pid }) => pid),
    stdio: (name, mode = 'good', more = {}) => ({
      type: 'stdio',
      name,
      command: process.execPath,
      args: [serverMain, mode, join(dir, `${name}.journal`)],
      env: {},
      ...more,
    }),
    journal: (name) =>
      readFileSync(join(dir, `${name}.journal`), 'utf8')
        .trim()
        .split('\n'),
    open: (servers, { times, ...more } = {}) =>
      broker.openMcp({
        owner: 's1',
        servers,
        directories: [dir],
        spillDir: join(dir, 'spill'),
        times: { connectMs: 15_000, callMs: 15_000, idleMs: 60_000, ...times },
        ...more,
      }),
    settled: (name, not = ['connecting'], owner = 's1') => status(name, ({ state }) => !not.includes(state), owner),
    status,
    call: (server, tool, args = {}, owner = 's1') => {
      calls += 1;
      return broker.callMcpTool({ owner, callId: `call-${calls}`, server, tool, args });
    },
  };
}
