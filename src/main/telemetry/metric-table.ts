/**
 * Every metric of the Prometheus endpoint, in one table: name, kind, labels, meaning, and how it is read from the status.
 * `docs/telemetry.md` shows the same table; a test compares them. Names are never changed: dashboards hang on them.
 */
import type { TurnUsage } from '../../shared/events.ts';
import type { ServerStatus } from '../sessions/server-status.ts';

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricSpec {
  readonly name: string;
  readonly kind: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly help: string;
  readonly read: (status: ServerStatus) => readonly Sample[];
}

export interface HistogramSpec {
  readonly name: string;
  readonly help: string;
  /** Upper bounds. */
  readonly buckets: readonly number[];
  readonly read: (usage: TurnUsage) => number | undefined;
}

const one = (value: number): Sample[] => [{ labels: {}, value }];
const by = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));

function gauge(name: string, help: string, read: MetricSpec['read'], labels: readonly string[] = []): MetricSpec {
  return { name, kind: 'gauge', labels, help, read };
}

function counter(name: string, help: string, read: MetricSpec['read'], labels: readonly string[] = []): MetricSpec {
  return { name, kind: 'counter', labels, help, read };
}

function ofLimiter(read: (limiter: ServerStatus['limiters'][number]) => number): MetricSpec['read'] {
  return ({ limiters }) => limiters.map((limiter) => ({ labels: { provider: limiter.provider }, value: read(limiter) }));
}

export const metrics: readonly MetricSpec[] = [
  gauge(
    'dsh_acp_sessions',
    'Sessions by state: open on this connection, of these attached to a thread or parked, and sharing a thread with another; and those that work for another one (delegated).',
    ({ sessions: { open, attached, parked, sharing, delegated } }) => by('state', { open, attached, parked, sharing, delegated }),
    ['state'],
  ),
  gauge('dsh_acp_threads', 'Session threads, idle ones included.', ({ threads }) => one(threads)),
  gauge(
    'dsh_acp_turns',
    'Turns that run, and those that wait for a slot.',
    ({ turns: { running, waiting } }) => by('state', { running, waiting }),
    ['state'],
  ),
  gauge('dsh_acp_prompts_queued', 'Prompts that wait behind an earlier one of their session.', ({ prompts }) => one(prompts.queued)),
  gauge(
    'dsh_acp_limiter_limit',
    'Model calls that may run at once now.',
    ofLimiter(({ limit }) => limit),
    ['provider'],
  ),
  gauge(
    'dsh_acp_limiter_limit_max',
    'The most that max_concurrency allows.',
    ofLimiter(({ max }) => max),
    ['provider'],
  ),
  gauge(
    'dsh_acp_limiter_running',
    'Model calls that run.',
    ofLimiter(({ running }) => running),
    ['provider'],
  ),
  gauge(
    'dsh_acp_limiter_waiting',
    'Model calls that wait for a place.',
    ofLimiter(({ waiting }) => waiting),
    ['provider'],
  ),
  gauge(
    'dsh_acp_limiter_paused_seconds',
    'Until the provider may be asked again after a Retry-After; 0 when it may be now.',
    ofLimiter(({ pausedMs }) => pausedMs / 1000),
    ['provider'],
  ),
  counter(
    'dsh_acp_limiter_calls_total',
    'Model calls that got a place.',
    ofLimiter(({ calls }) => calls),
    ['provider'],
  ),
  counter(
    'dsh_acp_limiter_overloads_total',
    'Model calls that the provider refused as too many.',
    ofLimiter(({ overloads }) => overloads),
    ['provider'],
  ),
  counter(
    'dsh_acp_prompts_total',
    'Prompts answered, by stop reason; `error` for those answered with an error.',
    ({ totals }) => by('stop_reason', totals.prompts),
    ['stop_reason'],
  ),
  counter('dsh_acp_prompt_errors_total', 'Prompts answered with an error, by its code.', ({ totals }) => by('code', totals.errors), [
    'code',
  ]),
  counter('dsh_acp_steps_total', 'Steps of ended turns: model calls with the tools they asked for.', ({ totals }) => one(totals.steps)),
  counter('dsh_acp_tool_calls_total', 'Tool calls of ended turns.', ({ totals }) => one(totals.toolCalls)),
  counter(
    'dsh_acp_tokens_total',
    'Tokens of ended turns by kind: input (from no cache), cache_read, output, reasoning (part of output).',
    ({ totals: { tokens } }) => {
      const { input, cacheRead, output, reasoning } = tokens;
      return by('kind', { input, cache_read: cacheRead, output, reasoning });
    },
    ['kind'],
  ),
  counter('dsh_acp_cost_usd_total', 'US dollars of ended turns, by the prices that hold.', ({ totals }) => one(totals.costUsd)),
  counter(
    'dsh_acp_permission_requests_total',
    'Permission requests to the client, by how they ended: selected, cancelled, unavailable.',
    ({ totals }) => by('outcome', totals.permissionRequests),
    ['outcome'],
  ),
  counter('dsh_acp_thread_losses_total', 'Session threads that ended while the server went on.', ({ totals }) => one(totals.threadLosses)),
  counter('dsh_acp_update_frames_total', 'Update frames handed to the stream to the client.', ({ totals }) => one(totals.updateFrames)),
  counter('dsh_acp_update_bytes_total', 'Their bytes.', ({ totals }) => one(totals.updateBytes)),
  gauge('dsh_acp_output_queued_bytes', 'Bytes that the client has not yet taken.', ({ output }) => one(output.queuedBytes)),
  gauge(
    'dsh_acp_event_loop_lag_seconds',
    "How late main's event loop was since the scrape before, or in the last ten seconds: median and 99th percentile.",
    ({ process: { loopLagMs } }) => by('quantile', { '0.5': loopLagMs.p50 / 1000, '0.99': loopLagMs.p99 / 1000 }),
    ['quantile'],
  ),
  gauge('dsh_acp_resident_memory_bytes', 'Resident memory of the process, all threads.', ({ process }) => one(process.rssBytes)),
  gauge(
    'dsh_acp_session_memory_bytes',
    'What sessions hold of conversations, answers and results: all together, and the largest one.',
    ({ memory }) => (memory === undefined ? [] : by('of', { all: memory.sessionBytes, largest: memory.sessions[0]?.bytes ?? 0 })),
    ['of'],
  ),
  gauge('dsh_acp_thread_memory_bytes', 'Heap and buffers of the session threads.', ({ memory }) =>
    memory === undefined ? [] : one(memory.threadBytes),
  ),
  gauge('dsh_acp_memory_limit_bytes', 'Resident memory at which turns are ended (max_rss_mb).', ({ memory }) =>
    memory === undefined ? [] : one(memory.limitBytes),
  ),
  counter(
    'dsh_acp_memory_ends_total',
    'Turns, and threads, that were ended for the memory they held.',
    ({ memory }) => (memory === undefined ? [] : by('what', { turn: memory.endedTurns, thread: memory.endedThreads })),
    ['what'],
  ),
  gauge('dsh_acp_heap_used_bytes', 'Used heap of the main thread.', ({ process }) => one(process.heapUsedBytes)),
  counter(
    'dsh_acp_restarts_total',
    'Processes of this server that died and were followed by another; under a supervisor alone.',
    ({ process }) => (process.restarts === undefined ? [] : one(process.restarts)),
  ),
  gauge('dsh_acp_uptime_seconds', 'Since the start of the process.', ({ process }) => one(process.uptimeMs / 1000)),
  counter(
    'dsh_acp_spans_total',
    'Spans for the trace collector: exported, or failed (it did not take them).',
    ({ spans }) => (spans === undefined ? [] : by('result', { exported: spans.exported, failed: spans.failed })),
    ['result'],
  ),
];

export const histograms: readonly HistogramSpec[] = [
  {
    name: 'dsh_acp_first_token_seconds',
    help: 'From the start of a turn to its first text or thought.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    read: ({ firstTokenMs }) => (firstTokenMs === undefined ? undefined : firstTokenMs / 1000),
  },
  {
    name: 'dsh_acp_turn_duration_seconds',
    help: 'From the start of a turn to its end; the wait for a slot is not part of it.',
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600],
    read: ({ elapsedMs }) => elapsedMs / 1000,
  },
];
