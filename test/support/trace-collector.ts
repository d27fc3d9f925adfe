/**
 * A collector of OpenTelemetry traces on loopback: takes OTLP over HTTP as JSON, and keeps the spans in plain form.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Record<string, unknown>;
  readonly resource: Record<string, unknown>;
  /** 2 is an error. */
  readonly status: { readonly code?: number; readonly message?: string };
  readonly startMs: number;
  readonly endMs: number;
}

/** `hang` reads and never answers. */
export type CollectorMood = 'take' | 'hang' | 'refuse';

const deadlineMs = 10_000;

export class TraceCollector {
  readonly spans: CollectedSpan[] = [];
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly text: string }[] = [];
  readonly #server: Server;
  #wake: () => void = () => undefined;

  private constructor(mood: CollectorMood) {
    this.#server = createServer((request, response) => {
      let text = '';
      request.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      request.on('end', () => {
        this.requests.push({ path: request.url ?? '', headers: request.headers, text });
        if (mood === 'take') {
          this.spans.push(...spansOf(JSON.parse(text)));
          response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
        } else if (mood === 'refuse') {
          response.writeHead(403, { 'content-type': 'text/plain' }).end('no');
        }
        this.#wake();
      });
    });
  }

  static async start(mood: CollectorMood = 'take'): Promise<TraceCollector> {
    const collector = new TraceCollector(mood);
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    return collector;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Fulfils at the first request at which `is` holds. */
  async until(is: (collector: this) => boolean): Promise<void> {
    const late = new Promise<never>((_resolve, reject) => {
      setTimeout(() => reject(new Error(`${this.spans.length} spans in ${this.requests.length} requests`)), deadlineMs).unref();
    });
    while (!is(this)) await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), late]);
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

function spansOf(body: any): CollectedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    scopeSpans.flatMap(({ spans }: any) =>
      spans.map((span: any) => ({
        name: span.name,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        attributes: plain(span.attributes),
        resource: plain(resource.attributes),
        status: span.status,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
      })),
    ),
  );
}

function plain(attributes: readonly { readonly key: string; readonly value: any }[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf(value: any): unknown {
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(valueOf);
  return value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue;
}
