/**
 * The HTTP end of the metrics: `/metrics` and `/healthz` on 127.0.0.1, and nothing else.
 *
 * Whoever is on this machine may read; a web page may not: its requests carry another host's name, also when that name was
 * made to point here (DNS rebinding).
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MetricsPage {
  readonly contentType: string;
  render(): Promise<string>;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

const mostConnections = 32;
const requestTimeoutMs = 5000;
const ownHost = /^(?:127\.0\.0\.1|localhost)(?::\d{1,5})?$/i;

/** @param port `0` takes a free one. @throws Error of the operating system when the port cannot be had */
export async function startMetricsServer(port: number, page: MetricsPage): Promise<MetricsServer> {
  const server = createServer({ requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs, maxHeaderSize: 8192 });
  server.maxConnections = mostConnections;
  server.on('request', (request, response) => void answer(request, response, page));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  return { port: (server.address() as AddressInfo).port, close: () => closed(server) };
}

async function answer(request: IncomingMessage, response: ServerResponse, page: MetricsPage): Promise<void> {
  const { status, type, text } = await contentFor(request, page);
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 405 ? { allow: 'GET' } : {}),
  });
  response.end(text);
}

interface Content {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

async function contentFor({ headers, method, url }: IncomingMessage, page: MetricsPage): Promise<Content> {
  if (!ownHost.test(headers.host ?? '')) return plain(403, 'Only for requests to 127.0.0.1 or localhost.');
  if (method !== 'GET') return plain(405, 'Only GET is answered.');
  const path = url?.split('?')[0];
  if (path === '/healthz') return plain(200, 'ok');
  if (path !== '/metrics') return plain(404, 'There is /metrics and /healthz.');
  try {
    return { status: 200, type: page.contentType, text: await page.render() };
  } catch {
    // The next scrape may fare better; the server itself must not fall over a figure.
    return plain(500, 'The metrics could not be gathered.');
  }
}

function plain(status: number, text: string): Content {
  return { status, type: 'text/plain; charset=utf-8', text: `${text}\n` };
}

async function closed(server: Server): Promise<void> {
  const end = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await end;
}
