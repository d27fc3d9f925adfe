/**
 * The metrics as Prometheus reads them. prom-client is loaded here and not earlier, so that a server without metrics does not
 * have it in memory.
 */
import type { ServerStatus } from '../sessions/server-status.ts';
import { histograms, metrics, type MetricSpec } from './metric-table.ts';
import type { MetricsPage } from './metrics-server.ts';
import type { ServerCounters } from './server-counters.ts';

type PromClient = typeof import('prom-client');

/** Makes the page; from now on turns are counted in its histograms. @param status read once per scrape */
export async function createMetricsPage(status: () => ServerStatus, counters: ServerCounters): Promise<MetricsPage> {
  const client: PromClient = await import('prom-client');
  const registry = new client.Registry();
  const show = metrics.map((spec) => register(client, registry, spec));
  const observe = histograms.map(({ name, help, buckets, read }) => {
    const histogram = new client.Histogram({ name, help, buckets: [...buckets], registers: [registry] });
    return { histogram, read };
  });
  counters.onTurn = (usage) => {
    for (const { histogram, read } of observe) {
      const value = read(usage);
      if (value !== undefined) histogram.observe(value);
    }
  };
  return {
    contentType: registry.contentType,
    render: () => {
      const now = status();
      for (const take of show) take(now);
      return registry.metrics();
    },
  };
}

/** A counter of prom-client only adds: it is set back first, and gets the whole number that the server has counted. */
function register(
  { Counter, Gauge }: PromClient,
  registry: InstanceType<PromClient['Registry']>,
  { name, kind, help, labels, read }: MetricSpec,
): (status: ServerStatus) => void {
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  const metric = kind === 'gauge' ? new Gauge(options) : new Counter(options);
  return (status) => {
    metric.reset();
    for (const { labels: given, value } of read(status)) metric.inc({ ...given }, value);
  };
}
