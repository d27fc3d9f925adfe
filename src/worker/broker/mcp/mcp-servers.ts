/**
 * All MCP servers of all sessions, each session's apart: the broker's side of {@link McpApi}.
 *
 * A session on no thread keeps its servers for a while, so that what they hold in memory outlives a pause; how many such
 * sessions there are is bounded, and who was left alone the longest gives way.
 */
import type { McpApi, McpCallRequest, McpCallResult, McpNews, McpOpenRequest } from '../../../shared/mcp-protocol.ts';
import type { Launch } from '../process-group.ts';
import { SessionServers } from './session-servers.ts';
import type { ServerLaunch, StdioStarter } from './stdio-server.ts';

export interface McpServersParts {
  readonly clientInfo: { readonly name: string; readonly version: string };
  /** What a server may inherit. */
  readonly environment: Readonly<Record<string, string>>;
  /** Starts a process group that carries the mark and belongs to the session, and tells main of it. */
  readonly launch: (owner: string, mark: string, spec: ServerLaunch) => Promise<Launch>;
  readonly sweep: StdioStarter['sweep'];
}

/** Sessions on no thread that have servers. */
const mostIdle = 32;

interface Entry {
  readonly servers: SessionServers;
  readonly idleMs: number;
  /** Set while nobody is there to call them. */
  idle: { readonly since: number; readonly timer: NodeJS.Timeout } | undefined;
}

export class McpServers implements McpApi {
  readonly #parts: McpServersParts;
  readonly #entries = new Map<string, Entry>();
  readonly #endings = new Map<string, Promise<void>>();
  #isDown = false;

  constructor(parts: McpServersParts) {
    this.#parts = parts;
  }

  async openMcp(request: McpOpenRequest): Promise<void> {
    const { owner, ahead, times } = request;
    const known = this.#entries.get(owner);
    if (this.#isDown || (known?.servers.isFor(request) === true && ahead === true)) return;
    if (known?.servers.isFor(request) === true) {
      this.#setBusy(known);
      known.servers.revive();
      return;
    }
    if (ahead === true && (times.idleMs === 0 || this.#idle().length >= mostIdle)) return;
    if (known !== undefined) this.#remove(owner, known);
    if (request.servers.length === 0) return;
    const entry: Entry = { servers: new SessionServers(request, this.#partsFor(owner)), idleMs: times.idleMs, idle: undefined };
    this.#entries.set(owner, entry);
    if (ahead === true) this.#setIdle(owner, entry);
  }

  async awaitMcp(owner: string, seq: number, waitMs: number): Promise<McpNews> {
    return (await this.#entries.get(owner)?.servers.news(seq, waitMs)) ?? { seq, servers: [], closed: true };
  }

  async callMcpTool(request: McpCallRequest): Promise<McpCallResult> {
    const entry = this.#entries.get(request.owner);
    if (entry !== undefined) return await entry.servers.call(request);
    return { kind: 'failed', code: 'MCP_UNAVAILABLE', text: 'The MCP servers of this session have been ended.' };
  }

  async cancelMcpCall(owner: string, callId: string): Promise<void> {
    this.#entries.get(owner)?.servers.cancel(callId);
  }

  /** The session has left its thread: its servers are kept for a while, or ended if that is not wanted. */
  async park(owner: string): Promise<void> {
    const entry = this.#entries.get(owner);
    if (entry === undefined) return;
    entry.servers.release();
    if (entry.idleMs === 0) return await this.releaseOwner(owner);
    this.#setIdle(owner, entry);
    const idle = this.#idle();
    const [oldest] = idle.sort(([, a], [, b]) => (a.idle?.since ?? 0) - (b.idle?.since ?? 0));
    if (idle.length > mostIdle && oldest !== undefined) this.#remove(...oldest);
  }

  /** Fulfils when nothing of the owner is left. */
  async releaseOwner(owner: string): Promise<void> {
    const entry = this.#entries.get(owner);
    if (entry !== undefined) this.#remove(owner, entry);
    await this.#endings.get(owner);
  }

  /** Ends everything there is. Later requests are dropped. */
  async shutdown(): Promise<void> {
    this.#isDown = true;
    for (const [owner, entry] of this.#entries) this.#remove(owner, entry);
    await Promise.all(this.#endings.values());
  }

  #partsFor(owner: string): ConstructorParameters<typeof SessionServers>[1] {
    const { clientInfo, environment, launch, sweep } = this.#parts;
    return { clientInfo, starter: { environment, launch: (mark, spec) => launch(owner, mark, spec), sweep } };
  }

  #idle(): [string, Entry][] {
    return [...this.#entries].filter(([, entry]) => entry.idle !== undefined);
  }

  #setIdle(owner: string, entry: Entry): void {
    this.#setBusy(entry);
    const timer = setTimeout(() => this.#remove(owner, entry), entry.idleMs);
    entry.idle = { since: performance.now(), timer };
  }

  #setBusy(entry: Entry): void {
    clearTimeout(entry.idle?.timer);
    entry.idle = undefined;
  }

  #remove(owner: string, entry: Entry): void {
    this.#setBusy(entry);
    if (this.#entries.get(owner) === entry) this.#entries.delete(owner);
    const ending = Promise.all([this.#endings.get(owner), entry.servers.end()]).then(() => {
      if (this.#endings.get(owner) === ending) this.#endings.delete(owner);
    });
    this.#endings.set(owner, ending);
  }
}
