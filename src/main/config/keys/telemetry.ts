/** Metrics and traces: `[telemetry]`. */
import type { KeySpec } from '../key-spec.ts';
import { count } from '../value-types.ts';

export const telemetryKeys = {
  metrics_port: {
    section: 'telemetry',
    type: count(0, 65_535),
    default: undefined,
    doc: 'Port of 127.0.0.1 on which Prometheus metrics are served at `/metrics`; 0 takes a free one and names it on stderr.',
  },
  otlp_endpoint: {
    section: 'telemetry',
    type: { kind: 'url' },
    default: undefined,
    defaultText: '`$OTEL_EXPORTER_OTLP_ENDPOINT`, else none',
    doc: 'Base URL of an OpenTelemetry collector (OTLP over HTTP), to which the spans of turns, model calls and tool calls are sent.',
  },
} as const satisfies Record<string, KeySpec>;
