/**
 * The spans of one turn while it runs: some open, the finished ones bounded. The oldest finished ones go first.
 */
import { attributes } from '../../shared/trace-attributes.ts';
import type { SpanRecord } from '../../shared/turn-trace.ts';

export type Attributes = Record<string, string | number | boolean | string[]>;

/** A span that has not ended. */
export interface OpenSpan {
  readonly name: string;
  readonly operation: SpanRecord['operation'];
  startMs: number;
  readonly attributes: Attributes;
}

/** Besides the turn's own span. */
export const mostSpans = 1000;
/** How many go at once: removing one by one would move the rest each time. */
const dropAtOnce = 100;

export class SpanList {
  readonly #finished: SpanRecord[] = [];
  #dropped = 0;

  get size(): number {
    return this.#finished.length;
  }

  /** A child of the turn ends. One that would end before it began never was. */
  close(span: OpenSpan, endMs: number, error?: string): void {
    if (endMs < span.startMs) return;
    if (this.#finished.length >= mostSpans) {
      this.#finished.splice(0, dropAtOnce);
      this.#dropped += dropAtOnce;
    }
    this.#finished.push(ended(span, { endMs, error, parent: 0 }));
  }

  /** The turn's span first, then its children in the order in which they ended. */
  all(root: OpenSpan, endMs: number, error?: string): SpanRecord[] {
    if (this.#dropped > 0) root.attributes[attributes.droppedSpans] = this.#dropped;
    return [ended(root, { endMs: Math.max(endMs, root.startMs), error }), ...this.#finished];
  }
}

function ended(span: OpenSpan, { endMs, error, parent }: { endMs: number; error: string | undefined; parent?: number }): SpanRecord {
  return {
    name: span.name,
    operation: span.operation,
    startMs: span.startMs,
    endMs,
    attributes: error === undefined ? span.attributes : { ...span.attributes, [attributes.errorType]: error },
    ...(parent === undefined ? {} : { parent }),
    ...(error === undefined ? {} : { error }),
  };
}
