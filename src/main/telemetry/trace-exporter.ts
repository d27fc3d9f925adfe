/**
 * Traces of turns, exported with OpenTelemetry over OTLP/HTTP: batched, bounded, and never waited for by a turn. What the
 * collector does not take is dropped. Loaded only when there is an endpoint.
 *
 * OpenTelemetry's own variables for headers, time limits, certificates and resource attributes hold here, too.
 */
import { type Context, isSpanContextValid, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { attributes } from '../../shared/trace-attributes.ts';
import type { SpanRecord, TurnTrace } from '../../shared/turn-trace.ts';
import { type SpanCounts, SpanSink } from './span-sink.ts';

export interface TraceExporterOptions {
  /** Base URL; `/v1/traces` is added. */
  readonly endpoint: string;
  readonly agentName: string;
  readonly version: string;
  /** Names this process among several of one service. */
  readonly instance: string;
  /** Called at most once. */
  readonly onFirstFailure: (reason: string) => void;
}

const mostWaitingSpans = 16_384;
const batchDelayMs = 1000;
const exportTimeoutMs = 10_000;

export class TraceExporter {
  readonly #provider: TracerProvider;
  readonly #sink: SpanSink;
  readonly #tracer: Tracer;
  readonly #agentName: string;

  constructor({ endpoint, agentName, version, instance, onFirstFailure }: TraceExporterOptions) {
    const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
    this.#sink = new SpanSink(new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMs }), onFirstFailure);
    const processor = new BatchSpanProcessor({
      exporter: this.#sink,
      maxQueueSize: mostWaitingSpans,
      scheduledDelayMillis: batchDelayMs,
      exportTimeoutMillis: exportTimeoutMs,
    });
    const own = resourceFromAttributes({
      [attributes.serviceName]: 'dsh-acp',
      [attributes.serviceVersion]: version,
      [attributes.serviceInstance]: instance,
    });
    this.#provider = new TracerProvider({
      resource: own.merge(detectResources({ detectors: [envDetector] })),
      spanProcessors: [processor],
    });
    this.#tracer = this.#provider.getTracer('dsh-acp', version);
    this.#agentName = agentName;
  }

  get counts(): SpanCounts {
    return this.#sink.counts;
  }

  /** Hands a turn's spans to the batches; returns at once. A caller that does not sample its trace gets none. */
  take({ traceparent, spans }: TurnTrace): void {
    const above = parentContext(traceparent);
    const contexts: Context[] = [];
    for (const record of spans) {
      const parent = record.parent === undefined ? above : (contexts[record.parent] ?? above);
      contexts.push(this.#make(record, parent));
    }
  }

  /** Sends what waits. Takes as long as the collector does: to be raced against a deadline. Never rejects. */
  async stop(): Promise<void> {
    await this.#provider.shutdown().catch(() => undefined);
  }

  #make(record: SpanRecord, parent: Context): Context {
    const isTurn = record.operation === 'invoke_agent';
    const span = this.#tracer.startSpan(
      record.name,
      {
        kind: record.operation === 'chat' ? SpanKind.CLIENT : SpanKind.INTERNAL,
        // As a date: a plain number may be taken for one of the process's own clock.
        startTime: new Date(record.startMs),
        attributes: isTurn ? { ...record.attributes, [attributes.agentName]: this.#agentName } : record.attributes,
      },
      parent,
    );
    if (record.error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: record.error });
    span.end(new Date(record.endMs));
    return trace.setSpan(parent, span);
  }
}

/** W3C `traceparent`; anything else begins a trace of its own. */
function parentContext(traceparent: string | undefined): Context {
  const match = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(traceparent?.trim() ?? '');
  if (match === null) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = '0'] = match;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(context) ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT;
}
