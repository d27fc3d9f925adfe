/**
 * Between OpenTelemetry's batches and its exporter: counts what became of the spans, and says once that they are not taken.
 */
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';

export interface SpanCounts {
  readonly exported: number;
  /** The collector refused them, or did not answer in time. */
  readonly failed: number;
}

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

const success = 0;

export class SpanSink implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #onFirstFailure: (reason: string) => void;
  #exported = 0;
  #failed = 0;

  constructor(exporter: SpanExporter, onFirstFailure: (reason: string) => void) {
    this.#exporter = exporter;
    this.#onFirstFailure = onFirstFailure;
  }

  get counts(): SpanCounts {
    return { exported: this.#exported, failed: this.#failed };
  }

  export(spans: ReadableSpan[], done: (result: Result) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#count(spans.length, result);
      done(result);
    });
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }

  #count(spans: number, { code, error }: Result): void {
    // The enum is in a package that is not ours to import.
    const outcome: number = code;
    if (outcome === success) {
      this.#exported += spans;
      return;
    }
    if (this.#failed === 0) this.#onFirstFailure(error?.message ?? 'no reason was given');
    this.#failed += spans;
  }
}
