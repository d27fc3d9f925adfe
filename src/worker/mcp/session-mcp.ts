/**
 * The MCP servers of one session while it is on a thread: has the broker connect to them, hears what becomes of them, and
 * keeps the session's tools and its log in step with that.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EventData, EventInput } from '../../shared/events.ts';
import type { McpApi, McpLeftOut, McpOpenRequest, McpServerStatus } from '../../shared/mcp-protocol.ts';
import type { LateTool } from '../agent/session-tools.ts';
import { kindOf } from './mcp-presenter.ts';
import { McpTool } from './mcp-tool.ts';
import { type OfferedTool, offeredTools } from './offered-tools.ts';
import { serverParts } from './tool-names.ts';

export interface SessionMcpParts {
  readonly api: McpApi;
  readonly request: McpOpenRequest;
  /** How long the first turn waits for servers that are still being connected to, in milliseconds. */
  readonly firstWaitMs: number;
  readonly record: (event: EventInput) => void;
  /** Shows the person a status that the log has already. */
  readonly tell: (event: EventInput) => void;
  /** The person was told when the session was opened: it comes back onto a thread. */
  readonly isBack: boolean;
  /** The tools that there are now, in place of those before. */
  readonly setTools: (tools: readonly LateTool[]) => void;
  /** Something kept the news from coming: for stderr. */
  readonly onFault: (error: unknown) => void;
}

/** A caller that waits longer asks again. */
const pollMs = 60_000;

type Status = EventData['mcp/status'];

export class SessionMcp {
  readonly #parts: SessionMcpParts;
  readonly #partOf: ReadonlyMap<string, string>;
  readonly #made = new Map<string, McpTool>();
  /** What the log said last of each server. */
  readonly #logged = new Map<string, Status>();
  /** Servers of whose status the person has heard in this opening. */
  readonly #told = new Set<string>();
  #settled = false;
  #wake: (() => void)[] = [];
  #waited = false;
  #isOver = false;

  constructor(parts: SessionMcpParts) {
    this.#parts = parts;
    const names = parts.request.servers.map(({ name }) => name);
    const made = serverParts(names);
    this.#partOf = new Map(names.map((name, index) => [name, made[index] ?? name]));
  }

  /** Learns from the stored log; all of it, in order, before {@link start}. */
  observe(event: EventInput): void {
    if (event.type === 'mcp/status') this.#logged.set(event.data.name, event.data);
  }

  /** From here on servers are connected to, and the log is written. */
  start(): void {
    void this.#follow().catch((error: unknown) => {
      if (!this.#isOver) this.#parts.onFault(error);
      this.#settle();
    });
  }

  /** The session leaves: nothing more is heard. What becomes of the servers is the broker's to know. */
  stop(): void {
    this.#isOver = true;
    this.#settle();
  }

  /**
   * A promise for the moment at which every server is connected to or has failed, or the first turn has waited long enough;
   * `undefined` when there is nothing to wait for. Only the first turn on this thread waits.
   */
  settling(signal: AbortSignal): Promise<void> | undefined {
    if (this.#settled || this.#waited) return undefined;
    this.#waited = true;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, this.#parts.firstWaitMs);
      signal.addEventListener('abort', done, { once: true });
      this.#wake.push(done);
    });
  }

  async #follow(): Promise<void> {
    const { api, request } = this.#parts;
    await api.openMcp(request);
    for (let seq = 0; !this.#isOver; ) {
      const news = await api.awaitMcp(request.owner, seq, pollMs);
      if (this.#isOver || news.closed === true) break;
      if (news.seq !== seq) this.#take(news.servers);
      seq = news.seq;
    }
    this.#settle();
  }

  #take(servers: readonly McpServerStatus[]): void {
    const { tools, leftOut } = offeredTools(servers, (server) => this.#partOf.get(server) ?? server);
    this.#parts.setTools(tools.map((tool) => this.#make(tool)));
    for (const status of servers) {
      const own = tools.filter(({ server }) => server === status.name);
      this.#log(statusEvent(status, own, leftOut.get(status.name) ?? []));
    }
    if (servers.every(({ state }) => state !== 'connecting')) this.#settle();
  }

  #settle(): void {
    this.#settled = true;
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** One that has not changed stays the object that it was: what is made of its schema is made once. */
  #make(offered: OfferedTool): McpTool {
    const key = JSON.stringify([offered.name, offered.info.print]);
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    if (this.#made.size >= mostMade) this.#made.clear();
    const made = new McpTool({ ...offered, api: this.#parts.api });
    this.#made.set(key, made);
    return made;
  }

  /** Only what is new is logged; what the log says already, the person is told once in each opening: a replay leaves it out. */
  #log(status: Status | undefined): void {
    if (status === undefined) return;
    const { record, tell, isBack } = this.#parts;
    const event = { type: 'mcp/status', data: status } as const;
    const isKnown = isDeepStrictEqual(this.#logged.get(status.name), status);
    if (!isKnown) {
      this.#logged.set(status.name, status);
      record(event);
    } else if (!isBack && !this.#told.has(status.name)) {
      tell(event);
    }
    this.#told.add(status.name);
  }
}

/** Tools that come and go are made anew. */
const mostMade = 400;
const mostLeftOut = 40;

/** `undefined` while it cannot be said. */
function statusEvent(
  { name, state, leftOut, error }: McpServerStatus,
  tools: readonly OfferedTool[],
  more: readonly McpLeftOut[],
): Status | undefined {
  if (state === 'connecting') return undefined;
  if (state !== 'connected') return { name, state, ...(error === undefined ? {} : { error }) };
  const all = [...leftOut, ...more].slice(0, mostLeftOut);
  const notes = tools.map(({ name, info }) => ({ name, tool: info.name, kind: kindOf(info.hints) }));
  return { name, state, tools: notes, ...(all.length === 0 ? {} : { leftOut: all }) };
}
