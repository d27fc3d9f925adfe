/**
 * One connection to one MCP server, from its start to its proven end.
 *
 * Whatever the server does wrong fails the call that met it or ends the connection; nothing is thrown from here beside.
 * The server may ask for the roots of the workspace and for nothing else: the SDK refuses what was not advertised.
 */
import { pathToFileURL } from 'node:url';
import type { McpServerSpec } from '../../../shared/mcp-protocol.ts';
import { diagnosticText } from '../subagents/diagnostic.ts';
import { SecretFilter } from '../subagents/secret-filter.ts';
import { within } from '../within.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { startServer, type StdioServer, type StdioStarter } from './stdio-server.ts';
import { cleanText } from './clean-text.ts';
import { loadMcpClient, type McpClientLibrary } from './load-mcp-client.ts';
import type { AskForPage } from './read-tools.ts';

export interface LinkParts {
  readonly spec: McpServerSpec;
  /** Canonical; the first is where a program is started. */
  readonly directories: readonly string[];
  readonly clientInfo: { readonly name: string; readonly version: string };
  readonly starter: StdioStarter;
  /** The server says that its tools have changed. */
  readonly onToolsChanged: () => void;
}

/** How a call ended that gave no result. */
export interface LinkFailure {
  readonly kind: 'timeout' | 'aborted' | 'refused' | 'broken';
  /** For people, without secrets. */
  readonly words: string;
}

type Client = InstanceType<McpClientLibrary['Client']>;
type HttpTransport = InstanceType<McpClientLibrary['StreamableHTTPClientTransport'] | McpClientLibrary['SSEClientTransport']>;

/** For a server to hear that its session is over. */
const farewellMs = 300;

export class McpLink {
  /** Fulfils with the reason once nothing more comes from it. Never rejects. For a remote server that is only when it is given up. */
  readonly closed: Promise<string>;
  readonly #library: McpClientLibrary;
  readonly #client: Client;
  readonly #stdio: StdioServer | undefined;
  readonly #http: HttpTransport | undefined;
  readonly #secrets: SecretFilter;
  #failure: string | undefined;
  #isClosed = false;
  #ending: Promise<void> | undefined;

  /**
   * Connects. What was started is ended again when it rejects, or when `signal` aborts; the message of the error is for
   * people and holds no secrets.
   */
  static async open(parts: LinkParts, signal: AbortSignal): Promise<McpLink> {
    const library = await loadMcpClient();
    signal.throwIfAborted();
    const { spec, directories, starter } = parts;
    const stdio = spec.type === 'stdio' ? await startServer(spec, directories, starter) : undefined;
    const link = new McpLink(parts, library, stdio);
    try {
      await link.#connect(signal);
      return link;
    } catch (error) {
      const words = await link.#wordsOf(error, signal);
      await link.end();
      throw new Error(words, { cause: error });
    }
  }

  private constructor(parts: LinkParts, library: McpClientLibrary, stdio: StdioServer | undefined) {
    const { spec, directories, clientInfo, onToolsChanged } = parts;
    this.#library = library;
    this.#stdio = stdio;
    this.#secrets = secretsOf(spec);
    this.#http = spec.type === 'stdio' ? undefined : this.#httpTransport(spec);
    // Schemas of a server are never compiled: its tools are asked for without the SDK's own reading of them.
    const jsonSchemaValidator = {
      getValidator: () => () => ({ valid: false, data: undefined, errorMessage: 'not checked here' }) as const,
    };
    this.#client = new library.Client(clientInfo, { capabilities: { roots: {} }, jsonSchemaValidator });
    const roots = directories.map((path) => ({ uri: pathToFileURL(path).href }));
    this.#client.setRequestHandler(library.ListRootsRequestSchema, () => ({ roots }));
    this.#client.setNotificationHandler(library.ToolListChangedNotificationSchema, onToolsChanged);
    // Heard, or else they would be lost as unhandled: what matters of them fails a request, too.
    this.#client.onerror = () => undefined;
    this.closed = new Promise((resolve) => {
      this.#client.onclose = () => {
        this.#isClosed = true;
        void this.#howItEnded().then((words) => resolve(this.#clean(words)));
      };
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get hasTools(): boolean {
    return this.#client.getServerCapabilities()?.tools !== undefined;
  }

  /** Asks for one page of the tools. Rejects with an error whose message is for people. */
  page(signal: AbortSignal, timeoutMs: number): AskForPage {
    return async (cursor) => {
      const params = cursor === undefined ? {} : { cursor };
      try {
        return await this.#client.request({ method: 'tools/list', params }, this.#library.ResultSchema, { signal, timeout: timeoutMs });
      } catch (error) {
        throw new Error(await this.#wordsOf(error, signal), { cause: error });
      }
    };
  }

  /** The raw result. Never rejects. */
  async call(
    name: string,
    args: object,
    { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ): Promise<{ readonly result: Readonly<Record<string, unknown>> } | { readonly failure: LinkFailure }> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(new Error('the call took too long')), timeoutMs);
    const both = AbortSignal.any([signal, limit.signal]);
    try {
      const request = { method: 'tools/call', params: { name, arguments: { ...args } } };
      return { result: await this.#client.request(request, this.#library.ResultSchema, { signal: both, timeout: longestTimerMs }) };
    } catch (error) {
      if (signal.aborted) return { failure: { kind: 'aborted', words: 'it was cancelled' } };
      if (limit.signal.aborted) return { failure: { kind: 'timeout', words: 'it took too long' } };
      return { failure: { kind: this.#kindOf(error), words: await this.#wordsOf(error) } };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the connection, and its program with all that it left. One promise, however often it is called; never rejects. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const transport = this.#stdio?.transport ?? this.#http;
    if (transport === undefined) throw new Error('there is no way to it');
    // The budget is the caller's, and its signal's: the SDK's own must not come first.
    const connected = this.#client.connect(transport, { signal, timeout: longestTimerMs });
    await untilAborted(connected, signal);
  }

  async #end(): Promise<void> {
    if (this.#http !== undefined && 'terminateSession' in this.#http && !this.#isClosed) {
      await within(
        this.#http.terminateSession().catch(() => undefined),
        farewellMs,
        undefined,
      );
    }
    await this.#stdio?.end();
    await this.#client.close().catch(() => undefined);
  }

  /** It broke a bound: nothing more is read of it. */
  #giveUp(reason: string): void {
    this.#failure ??= reason;
    void this.end();
  }

  #httpTransport(spec: Exclude<McpServerSpec, { type: 'stdio' }>): HttpTransport {
    const { SSEClientTransport, StreamableHTTPClientTransport } = this.#library;
    const options = { requestInit: { headers: { ...spec.headers } }, fetch: boundedFetch((reason) => this.#giveUp(reason)) };
    const url = new URL(spec.url);
    if (spec.type === 'http') return new StreamableHTTPClientTransport(url, options);
    const transport = new SSEClientTransport(url, options);
    // It would connect again by itself, to a server that knows nothing of it then.
    transport.onerror = () => {
      if (this.#client.getServerCapabilities() !== undefined) this.#giveUp('its stream of events ended');
    };
    return transport;
  }

  #kindOf(error: unknown): LinkFailure['kind'] {
    return this.#isClosed || !(error instanceof this.#library.McpError) ? 'broken' : 'refused';
  }

  /** What the server says of itself when it is gone tells more than the broken connection. */
  async #wordsOf(error: unknown, signal?: AbortSignal): Promise<string> {
    if (this.#failure !== undefined) return this.#clean(this.#failure);
    const isGivenUp = signal?.aborted === true;
    if (this.#stdio !== undefined && this.#isClosed && !isGivenUp) return this.#clean(await this.#stdio.lastWords());
    const words = wordsOfError(isGivenUp ? signal.reason : error);
    return this.#clean([words, this.#stdio?.tail() ?? ''].filter((part) => part !== '').join('\n'));
  }

  async #howItEnded(): Promise<string> {
    if (this.#failure !== undefined) return this.#failure;
    return this.#stdio === undefined ? 'the connection was closed' : await this.#stdio.lastWords();
  }

  #clean(text: string): string {
    return cleanText(diagnosticText(text, this.#secrets), longestWords);
  }
}

/** What a person is shown, in UTF-16 units. */
const longestWords = 4096;
/** The longest that a timer can wait. */
const longestTimerMs = 2 ** 31 - 1;

async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) promise.catch(() => undefined);
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** What `fetch` throws says nothing itself: the reason is its cause. */
function wordsOfError(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  const { cause, code } = error as { readonly cause?: unknown; readonly code?: unknown };
  const why = cause instanceof Error ? ('code' in cause ? String(cause.code) : cause.message) : undefined;
  const status = typeof code === 'number' && code >= 400 && code < 600 ? `HTTP ${code}` : undefined;
  const more = [status, why].filter((part) => part !== undefined && part !== '');
  return `${error.message}${more.length === 0 ? '' : ` (${more.join(', ')})`}`;
}

/** All that the client gave to reach it counts as secret: the filter goes by names, and here any name may hold one. */
function secretsOf(spec: McpServerSpec): SecretFilter {
  const given = spec.type === 'stdio' ? Object.values(spec.env) : [...Object.values(spec.headers), ...urlSecrets(spec.url)];
  // `Bearer abc` is quoted as `abc`, too.
  const parts = given.flatMap((value) => [value, ...value.split(/\s+/)]);
  return new SecretFilter(Object.fromEntries([...new Set(parts)].map((value, index) => [`SECRET_${index}`, value])));
}

function urlSecrets(text: string): string[] {
  const { username, password, search, searchParams } = new URL(text);
  return [username, password, search, ...searchParams.values()];
}
