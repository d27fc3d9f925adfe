/** The MCP servers of one session: what they are, their news, and the calls that are under way. */
import { NewsWait } from '../../../shared/news-wait.ts';
import type { McpCallRequest, McpCallResult, McpNews, McpOpenRequest, McpServerSpec } from '../../../shared/mcp-protocol.ts';
import { definitionText } from './launch-print.ts';
import { McpServer, type McpServerParts } from './mcp-server.ts';

/** Calls of one session that run at once; the scheduler of a session allows fewer. */
const mostCalls = 128;
/** A caller that waits longer asks again. */
const longestWaitMs = 60_000;

export type SessionServersParts = Pick<McpServerParts, 'clientInfo' | 'starter'>;

export class SessionServers {
  readonly #definition: string;
  readonly #servers: readonly McpServer[];
  readonly #calls = new Map<string, AbortController>();
  readonly #wake = new NewsWait();
  #seq = 1;
  #ended: Promise<void> | undefined;

  /** Begins to connect to all of them at once. */
  constructor(request: McpOpenRequest, parts: SessionServersParts) {
    this.#definition = definitionOf(request);
    const { directories, times, spillDir } = request;
    const onChange = (): void => this.#changed();
    const start = (spec: McpServerSpec): McpServer => new McpServer(spec, { ...parts, directories, times, spillDir, onChange });
    this.#servers = request.servers.map(start);
  }

  /** Whether the request asks for just what there is. */
  isFor(request: McpOpenRequest): boolean {
    return this.#definition === definitionOf(request);
  }

  revive(): void {
    for (const server of this.#servers) server.revive();
  }

  async news(seq: number, waitMs: number): Promise<McpNews> {
    if (seq >= this.#seq && this.#ended === undefined && waitMs > 0) await this.#wake.wait(Math.min(waitMs, longestWaitMs));
    const servers = this.#servers.map((server) => server.status);
    return { seq: this.#seq, servers, ...(this.#ended === undefined ? {} : { closed: true }) };
  }

  /** Never rejects. */
  async call({ callId, server: name, tool, args }: McpCallRequest): Promise<McpCallResult> {
    const server = this.#servers.find((one) => one.status.name === name);
    if (server === undefined) return { kind: 'failed', code: 'MCP_UNAVAILABLE', text: 'This session has no such MCP server.' };
    if (this.#calls.size >= mostCalls || this.#calls.has(callId)) {
      return {
        kind: 'failed',
        code: 'MCP_UNAVAILABLE',
        text: `At most ${mostCalls} calls of MCP servers run at once, each with an id of its own.`,
      };
    }
    const stop = new AbortController();
    this.#calls.set(callId, stop);
    try {
      return await server.call(tool, args, stop.signal);
    } finally {
      this.#calls.delete(callId);
    }
  }

  cancel(callId: string): void {
    this.#calls.get(callId)?.abort();
  }

  /** Whoever waits for news gets what there is: nobody will read it later. */
  release(): void {
    this.#wake.wake();
  }

  /** Ends all of them; fulfils when nothing is left. One promise, however often it is called; never rejects. */
  end(): Promise<void> {
    this.#ended ??= Promise.all(this.#servers.map((server) => server.end())).then(() => undefined);
    for (const stop of this.#calls.values()) stop.abort();
    this.#changed();
    return this.#ended;
  }

  #changed(): void {
    this.#seq += 1;
    this.release();
  }
}

/** Directories count, too: they are what the servers were started with. */
function definitionOf({ servers, directories }: McpOpenRequest): string {
  return JSON.stringify([directories, servers.map(definitionText)]);
}
