/**
 * One MCP server of one session over its life: connected in the background, asked for its tools, started again by a call
 * when it has ended. Never rejects: what went wrong is its status, or the answer of a call.
 */
import type { JsonObject } from '../../../shared/errors.ts';
import type { McpCallResult, McpServerSpec, McpServerStatus, McpTimes } from '../../../shared/mcp-protocol.ts';
import { launchPrint } from './launch-print.ts';
import { type LinkFailure, McpLink, type LinkParts } from './mcp-link.ts';
import { readResult } from './read-result.ts';
import { readTools, type ToolList } from './read-tools.ts';

export interface McpServerParts extends Omit<LinkParts, 'spec' | 'onToolsChanged'> {
  readonly times: McpTimes;
  readonly spillDir: string;
  /** The status is another one now. */
  readonly onChange: () => void;
}

/** A server that ends this soon after its start is started again ever more rarely. */
const soonMs = 60_000;
const firstPauseMs = 1000;
const longestPauseMs = 60_000;
/** Servers say it several times in a row. */
const firstLookMs = 100;
/** Between two looks at a list that keeps changing. */
const lookPauseMs = 1000;

export class McpServer {
  readonly #spec: McpServerSpec;
  readonly #parts: McpServerParts;
  readonly #life = new AbortController();
  readonly #links = new Set<McpLink>();
  #status: McpServerStatus;
  #link: McpLink | undefined;
  #linkedAt = 0;
  #connecting: Promise<void>;
  /** Ends in a row that came soon, and failed starts. */
  #mishaps = 0;
  #notBefore = 0;
  /** The server has said that its tools are others now. */
  #isStale = false;
  #isLooking = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #look: NodeJS.Timeout | undefined;

  /** Begins to connect at once. */
  constructor(spec: McpServerSpec, parts: McpServerParts) {
    this.#spec = spec;
    this.#parts = parts;
    this.#status = { name: spec.name, state: 'connecting', tools: [], leftOut: [] };
    this.#connecting = this.#connect();
  }

  get status(): McpServerStatus {
    return this.#status;
  }

  async call(tool: string, args: JsonObject, signal: AbortSignal): Promise<McpCallResult> {
    const unusable = await this.#makeUsable(signal);
    if (unusable !== undefined) return unusable;
    const link = this.#link;
    if (link === undefined) return this.#unavailable();
    const outcome = await link.call(tool, args, { signal, timeoutMs: this.#parts.times.callMs });
    if ('failure' in outcome) return this.#failed(link, outcome.failure);
    try {
      return { kind: 'result', ...(await readResult(outcome.result, this.#parts.spillDir)) };
    } catch {
      // Nested so deep that it cannot be written down.
      return { kind: 'failed', code: 'MCP_FAILED', text: `The MCP server "${this.#spec.name}" gave a result that cannot be read.` };
    }
  }

  /** A session comes back to it: one that has failed or ended is given another chance. */
  revive(): void {
    if (this.#status.state === 'connecting' || this.#isLinked() || performance.now() < this.#notBefore) return;
    this.#change({ ...this.#status, state: 'connecting' });
    this.#connecting = this.#connect();
  }

  /** For good: fulfils when nothing of it is left. */
  async end(): Promise<void> {
    this.#life.abort();
    clearTimeout(this.#look);
    await this.#connecting;
    await Promise.all([...this.#links].map((link) => link.end()));
  }

  async #connect(): Promise<void> {
    const { connectMs } = this.#parts.times;
    const limit = new AbortController();
    const tooLate = new Error(`it was not ready within ${connectMs} ms`);
    const timer = setTimeout(() => limit.abort(tooLate), connectMs);
    const signal = AbortSignal.any([this.#life.signal, limit.signal]);
    try {
      // Beside each other: the print takes as long as many a server.
      const [print, link] = await Promise.all([this.#print(), this.#open(signal)]);
      this.#take(link, await this.#list(link, print, signal));
    } catch (error) {
      if (!this.#life.signal.aborted) this.#connectFailed(error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(signal: AbortSignal): Promise<McpLink> {
    const { starter, directories, clientInfo } = this.#parts;
    const onToolsChanged = (): void => this.#toolsChanged();
    const link = await McpLink.open({ spec: this.#spec, directories, clientInfo, starter, onToolsChanged }, signal);
    this.#links.add(link);
    return link;
  }

  async #list(link: McpLink, print: string, signal: AbortSignal): Promise<ToolList> {
    if (!link.hasTools) return { tools: [], leftOut: [] };
    try {
      return await readTools(link.page(signal, this.#parts.times.connectMs), print);
    } catch (error) {
      await this.#drop(link);
      throw error;
    }
  }

  #take(link: McpLink, { tools, leftOut }: ToolList): void {
    this.#link = link;
    this.#linkedAt = performance.now();
    this.#change({ name: this.#spec.name, state: 'connected', tools, leftOut });
    if (this.#isStale) this.#toolsChanged();
    void link.closed.then((why) => this.#linkClosed(link, why));
  }

  #connectFailed(error: string): void {
    this.#countMishap();
    this.#change({ ...this.#status, state: 'failed', error });
  }

  #linkClosed(link: McpLink, why: string): void {
    void this.#drop(link);
    if (this.#link !== link || this.#life.signal.aborted) return;
    this.#link = undefined;
    this.#countMishap();
    // A remote server is not gone because its connection is: the next call tries it.
    if (this.#spec.type === 'stdio') this.#change({ ...this.#status, state: 'ended', error: why });
  }

  /** The first one may be tried again at once. */
  #countMishap(): void {
    if (performance.now() - this.#linkedAt > soonMs && this.#linkedAt > 0) this.#mishaps = 0;
    this.#linkedAt = 0;
    this.#mishaps += 1;
    const pause = this.#mishaps === 1 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#mishaps - 2));
    this.#notBefore = performance.now() + pause;
  }

  async #drop(link: McpLink): Promise<void> {
    await link.end();
    this.#links.delete(link);
  }

  /** Connects again when that is needed and may be tried. */
  async #makeUsable(signal: AbortSignal): Promise<McpCallResult | undefined> {
    if (this.#isLinked()) return undefined;
    await abortable(this.#connecting, signal);
    if (signal.aborted) return aborted(this.#spec.name);
    if (this.#isLinked()) return undefined;
    if (performance.now() < this.#notBefore || this.#life.signal.aborted) return this.#unavailable();
    this.#connecting = this.#connect();
    await abortable(this.#connecting, signal);
    if (signal.aborted) return aborted(this.#spec.name);
    return this.#isLinked() ? undefined : this.#unavailable();
  }

  #isLinked(): boolean {
    return this.#link?.isClosed === false;
  }

  #unavailable(): McpCallResult {
    const { name, error } = this.#status;
    const seconds = Math.ceil((this.#notBefore - performance.now()) / 1000);
    const when = seconds > 0 ? `It is not started again for ${seconds} s.` : 'The next call starts it again.';
    const why = error === undefined ? '' : `: ${error}`;
    return { kind: 'failed', code: 'MCP_UNAVAILABLE', text: `The MCP server "${name}" is not running${why}\n${when}` };
  }

  #failed(link: McpLink, { kind, words }: LinkFailure): McpCallResult {
    const { name } = this.#spec;
    switch (kind) {
      case 'aborted':
        return aborted(name);
      case 'timeout':
        return {
          kind: 'failed',
          code: 'MCP_TIMEOUT',
          text: `The MCP server "${name}" gave no result within ${this.#parts.times.callMs} ms. What the call has done is not known.`,
        };
      case 'refused':
        return { kind: 'failed', code: 'MCP_FAILED', text: `The MCP server "${name}" refused the call: ${words}` };
      case 'broken':
        this.#brokenBy(link);
        return {
          kind: 'failed',
          code: 'MCP_FAILED',
          text: `The connection to the MCP server "${name}" broke during the call: ${words}\nWhat the call has done is not known.`,
        };
      default:
        return kind satisfies never;
    }
  }

  /** A remote server may have forgotten the session: a fresh connection is made for the next call. */
  #brokenBy(link: McpLink): void {
    if (this.#spec.type === 'stdio' || this.#link !== link) return;
    this.#link = undefined;
    this.#countMishap();
    void this.#drop(link);
  }

  /** Said at any time, also before the first list is here, and as often as the server likes. */
  #toolsChanged(): void {
    this.#isStale = true;
    if (this.#look !== undefined || this.#isLooking || this.#life.signal.aborted) return;
    const pause = Math.max(firstLookMs, this.#lookedAt + lookPauseMs - performance.now());
    this.#look = setTimeout(() => {
      this.#look = undefined;
      if (this.#link !== undefined) void this.#lookAgain(this.#link);
    }, pause);
  }

  async #lookAgain(link: McpLink): Promise<void> {
    this.#isStale = false;
    this.#isLooking = true;
    try {
      const print = await this.#print();
      const { tools, leftOut } = await readTools(link.page(this.#life.signal, this.#parts.times.connectMs), print);
      if (link === this.#link && !this.#life.signal.aborted) this.#change({ ...this.#status, tools, leftOut });
    } catch {
      // A server that says that its tools have changed and then does not give them keeps those that it gave before.
    } finally {
      this.#isLooking = false;
      this.#lookedAt = performance.now();
      if (this.#isStale) this.#toolsChanged();
    }
  }

  #print(): Promise<string> {
    return launchPrint(this.#parts.directories[0] ?? '', this.#spec);
  }

  #change(status: McpServerStatus): void {
    this.#status = status;
    this.#parts.onChange();
  }
}

function aborted(name: string): McpCallResult {
  return { kind: 'failed', code: 'ABORTED', text: `The call of the MCP server "${name}" was cancelled before it ended.` };
}

async function abortable(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let abort = (): void => undefined;
  const stop = new Promise<void>((resolve) => {
    abort = resolve;
    signal.addEventListener('abort', abort, { once: true });
  });
  await Promise.race([promise, stop]);
  signal.removeEventListener('abort', abort);
}
