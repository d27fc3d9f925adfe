/** An MCP server over HTTP on loopback, in the process of the test: streamable, or the older way with server-sent events. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpServer, type McpServerOptions } from './mcp-server.ts';

export interface McpHttpOptions extends McpServerOptions {
  /** Requests without this header are refused. */
  readonly authorization?: string;
}

export class McpHttp {
  /** The headers of every request, in order. */
  readonly requests: IncomingMessage['headers'][] = [];
  /** Answers the next requests in the place of the server; `undefined` leaves them to it. */
  instead: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  readonly #options: McpHttpOptions;
  readonly #server: Server;
  #port = 0;
  readonly #streamable = new Map<string, StreamableHTTPServerTransport>();
  readonly #sse = new Map<string, SSEServerTransport>();

  private constructor(options: McpHttpOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(options: McpHttpOptions = {}): Promise<McpHttp> {
    const http = new McpHttp(options);
    http.#server.listen(0, '127.0.0.1');
    await once(http.#server, 'listening');
    http.#port = (http.#server.address() as AddressInfo).port;
    return http;
  }

  /** Also once it is closed. */
  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get url(): string {
    return `${this.origin}/mcp`;
  }

  get sseUrl(): string {
    return `${this.origin}/sse`;
  }

  get sessions(): number {
    return this.#streamable.size;
  }

  /** As if it had been started anew: it knows none of its sessions any more. */
  forget(): void {
    this.#streamable.clear();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(request.headers);
    if (this.instead?.(request, response) === true) return;
    const { authorization } = this.#options;
    if (authorization !== undefined && request.headers.authorization !== authorization) {
      response.writeHead(401).end('not you');
      return;
    }
    const url = new URL(request.url ?? '/', this.origin);
    if (url.pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response);
      this.#sse.set(transport.sessionId, transport);
      await createMcpServer(this.#options).connect(transport);
    } else if (url.pathname === '/messages') {
      await this.#sse.get(url.searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response);
    } else {
      await this.#streamed(request, response);
    }
  }

  async #streamed(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? this.#streamable.get(id) : undefined;
    if (known !== undefined) return await known.handleRequest(request, response);
    if (id !== undefined) {
      response.writeHead(404).end('no such session');
      return;
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void this.#streamable.set(session, transport),
      onsessionclosed: (session) => void this.#streamable.delete(session),
    });
    await createMcpServer(this.#options).connect(transport);
    await transport.handleRequest(request, response);
  }
}
