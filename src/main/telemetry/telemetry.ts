/**
 * What the server tells about itself beside its work: counters, the Prometheus endpoint, the traces. The parts that nobody
 * asked for are never loaded, and none of them can fail a turn or the start.
 */
import type { ServerConfig } from '../../shared/config.ts';
import type { LimiterStatus } from '../../shared/model-slots.ts';
import type { TurnTrace } from '../../shared/turn-trace.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { ServerFigures, ServerStatus } from '../sessions/server-status.ts';
import { LoopLag } from './loop-lag.ts';
import type { MetricsServer } from './metrics-server.ts';
import { ServerCounters } from './server-counters.ts';
import type { TraceExporter } from './trace-exporter.ts';

export interface TelemetryParts {
  readonly config: ServerConfig;
  readonly diagnostics: Diagnostics;
  /** Names this process. */
  readonly instance: string;
  readonly limiter: () => LimiterStatus;
  readonly queuedBytes: () => number;
  /** Absent without a supervisor. */
  readonly restarts?: number | undefined;
}

/** Variables that the exporter reads and that hold what opens a collector: no command gets them. */
export const collectorVariables = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'];

/** How long the last spans may take at the end. */
const lastFlushMs = 1000;

export class Telemetry {
  readonly counters = new ServerCounters();
  readonly #parts: TelemetryParts;
  readonly #lag = new LoopLag();
  #metrics: MetricsServer | undefined;
  #exporter: TraceExporter | undefined;

  constructor(parts: TelemetryParts) {
    this.#parts = parts;
  }

  /** Opens what is configured. What cannot be opened is said on stderr, and the server goes on without. */
  async start(status: () => ServerStatus): Promise<void> {
    await Promise.all([this.#startMetrics(status), this.#startTraces()]);
  }

  takeTrace(trace: TurnTrace): void {
    this.#exporter?.take(trace);
  }

  /** The part of the status that is not about sessions. */
  figures(): ServerFigures {
    const { config, limiter, queuedBytes, restarts } = this.#parts;
    const { model } = config.session;
    const memory = process.memoryUsage();
    return {
      // Other models run in this process: no provider, no limit.
      limiters: model.kind === 'openai-compatible' ? [{ provider: new URL(model.baseUrl).host, ...limiter() }] : [],
      totals: this.counters.totals(),
      process: {
        uptimeMs: Math.round(process.uptime() * 1000),
        ...(restarts === undefined ? {} : { restarts }),
        rssBytes: memory.rss,
        heapUsedBytes: memory.heapUsed,
        loopLagMs: this.#lag.read(),
      },
      output: { queuedBytes: queuedBytes() },
      ...(this.#exporter === undefined ? {} : { spans: this.#exporter.counts }),
      ...(this.#metrics === undefined ? {} : { metrics: { port: this.#metrics.port } }),
    };
  }

  /** Sends the last spans, within a second, and closes the port. Never rejects. */
  async stop(): Promise<void> {
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, lastFlushMs).unref());
    await Promise.race([Promise.all([this.#exporter?.stop(), this.#metrics?.close()]), deadline]);
    this.#lag.stop();
  }

  async #startMetrics(status: () => ServerStatus): Promise<void> {
    const { config, diagnostics } = this.#parts;
    if (config.metricsPort === undefined) return;
    try {
      const [{ createMetricsPage }, { startMetricsServer }] = await Promise.all([
        import('./metrics-page.ts'),
        import('./metrics-server.ts'),
      ]);
      this.#metrics = await startMetricsServer(config.metricsPort, await createMetricsPage(status, this.counters));
      this.#lag.start();
      diagnostics.log('info', `metrics are served at http://127.0.0.1:${this.#metrics.port}/metrics`);
    } catch (error) {
      diagnostics.log('error', `no metrics: port ${config.metricsPort} of 127.0.0.1 cannot be opened (${reasonOf(error)})`);
    }
  }

  async #startTraces(): Promise<void> {
    const { config, diagnostics, instance } = this.#parts;
    const endpoint = config.otlpEndpoint;
    if (endpoint === undefined) return;
    const { host } = new URL(endpoint);
    try {
      const { TraceExporter } = await import('./trace-exporter.ts');
      this.#exporter = new TraceExporter({
        endpoint,
        agentName: config.agentName,
        version: config.agentVersion,
        instance,
        onFirstFailure: (reason) => diagnostics.log('warn', `the trace collector at ${host} takes no spans: ${reason}`),
      });
    } catch (error) {
      diagnostics.log('error', `no traces: the exporter for ${host} could not be started (${reasonOf(error)})`);
    }
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return String(code ?? message ?? error).slice(0, 200);
}
