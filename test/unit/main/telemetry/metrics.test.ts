/** The Prometheus endpoint over real HTTP, and its table against the documentation. */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { histograms, metrics } from '../../../../src/main/telemetry/metric-table.ts';
import { createMetricsPage } from '../../../../src/main/telemetry/metrics-page.ts';
import { startMetricsServer } from '../../../../src/main/telemetry/metrics-server.ts';
import { ServerCounters } from '../../../../src/main/telemetry/server-counters.ts';
import type { ServerStatus } from '../../../../src/main/sessions/server-status.ts';
import { ServerError } from '../../../../src/shared/errors.ts';
import { projectRoot } from '../../../support/server-process.ts';

function statusOf(counters: ServerCounters): ServerStatus {
  return {
    isolation: 'dedicated',
    sessions: { open: 5, attached: 3, parked: 2, sharing: 0, delegated: 2 },
    threads: 4,
    turns: { running: 2, waiting: 1 },
    prompts: { queued: 6 },
    limiters: [
      { provider: 'api.example:443', limit: 8, max: 20, running: 7, waiting: 3, pausedMs: 1500, calls: 90, overloads: 2, queue: [] },
    ],
    totals: counters.totals(),
    process: { uptimeMs: 2000, rssBytes: 1e8, heapUsedBytes: 2e7, loopLagMs: { p50: 1, p99: 20 } },
    output: { queuedBytes: 77 },
  };
}

async function rig(t: Test) {
  const counters = new ServerCounters();
  const server = await startMetricsServer(0, await createMetricsPage(() => statusOf(counters), counters));
  t.teardown(() => server.close());
  const ask = (path: string, options: { method?: string; headers?: Record<string, string> } = {}) =>
    new Promise<{ status: number; type: string | undefined; allow: string | undefined; text: string }>((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port: server.port, path, agent: false, ...options }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
        response.on('end', () => {
          const { 'content-type': type, allow } = response.headers;
          resolve({ status: response.statusCode ?? 0, type, allow, text });
        });
      });
      asked.on('error', reject).end();
    });
  return { counters, server, ask };
}

const usage = { inputTokens: 10, outputTokens: 4, cacheReadTokens: 30, reasoningTokens: 1, steps: 2, toolCalls: 3, elapsedMs: 700 };

t.test('the page shows what the server counts, again and again', async (t) => {
  const { counters, ask } = await rig(t);
  counters.promptStarted(Promise.resolve({ stopReason: 'end_turn' }));
  counters.promptStarted(Promise.reject(new ServerError('THREAD_LOST', 'gone')));
  counters.promptStarted(Promise.reject(new TypeError('odd')));
  counters.turnEnded({ ok: true, stopReason: 'end_turn', usage: { ...usage, firstTokenMs: 300, costUsd: 0.25 } });
  counters.turnEnded({ ok: false, error: { code: 'MODEL_FAILED', message: '' }, usage });
  counters.turnEnded({ ok: false, error: { code: 'MODEL_FAILED', message: '' } });
  counters.turnEnded({ ok: true, stopReason: 'end_turn', usage, stored: true });
  t.match(counters.totals(), { firstTokenMs: { sum: 300, count: 1 }, turnMs: { sum: 1400, count: 2 } });
  counters.permissionAnswered({ outcome: 'selected', optionId: 'a' });
  counters.threadLost();
  counters.updatesWritten(12, 3456);
  for (const round of ['first', 'second']) {
    const { status, type, text } = await ask('/metrics');
    t.equal(status, 200, round);
    t.match(type, /^text\/plain; version=0\.0\.4/);
    const lines = text.split('\n');
    for (const line of [
      'dsh_acp_sessions{state="parked"} 2',
      'dsh_acp_turns{state="waiting"} 1',
      'dsh_acp_prompts_queued 6',
      'dsh_acp_limiter_limit{provider="api.example:443"} 8',
      'dsh_acp_limiter_paused_seconds{provider="api.example:443"} 1.5',
      'dsh_acp_limiter_overloads_total{provider="api.example:443"} 2',
      'dsh_acp_prompts_total{stop_reason="end_turn"} 1',
      'dsh_acp_prompts_total{stop_reason="error"} 2',
      'dsh_acp_prompt_errors_total{code="THREAD_LOST"} 1',
      'dsh_acp_prompt_errors_total{code="INTERNAL"} 1',
      'dsh_acp_steps_total 4',
      'dsh_acp_tool_calls_total 6',
      'dsh_acp_tokens_total{kind="cache_read"} 60',
      'dsh_acp_tokens_total{kind="reasoning"} 2',
      'dsh_acp_cost_usd_total 0.25',
      'dsh_acp_permission_requests_total{outcome="selected"} 1',
      'dsh_acp_thread_losses_total 1',
      'dsh_acp_update_frames_total 12',
      'dsh_acp_output_queued_bytes 77',
      'dsh_acp_event_loop_lag_seconds{quantile="0.99"} 0.02',
      'dsh_acp_first_token_seconds_bucket{le="0.25"} 0',
      'dsh_acp_first_token_seconds_bucket{le="0.5"} 1',
      'dsh_acp_first_token_seconds_count 1',
      'dsh_acp_turn_duration_seconds_count 2',
      'dsh_acp_turn_duration_seconds_sum 1.4',
    ]) {
      t.ok(lines.includes(line), `${line} (${round})`);
    }
  }
});

t.test('only a GET of this machine by its own name is answered', async (t) => {
  const { server, ask } = await rig(t);
  t.match(await ask('/healthz'), { status: 200, text: 'ok\n' });
  t.match(await ask('/metrics?x=1', { headers: { host: `localhost:${server.port}` } }), { status: 200 });
  for (const host of ['evil.example', `evil.example:${server.port}`, '127.0.0.1.evil.example', 'localhost.evil.example:80']) {
    t.match(await ask('/metrics', { headers: { host } }), { status: 403 }, `host "${host}"`);
  }
  t.match(await ask('/metrics', { method: 'POST' }), { status: 405, allow: 'GET' });
  for (const path of ['/', '/metrics/', '/debug', '/../metrics']) t.match(await ask(path), { status: 404 }, path);
});

t.test('a status that cannot be had is a failed scrape, not a failed server', async (t) => {
  const counters = new ServerCounters();
  const fail = (): never => {
    throw new Error('/secret/path');
  };
  const server = await startMetricsServer(0, await createMetricsPage(fail, counters));
  t.teardown(() => server.close());
  const answer = await fetch(`http://127.0.0.1:${server.port}/metrics`);
  t.equal(answer.status, 500);
  t.notMatch(await answer.text(), /secret/);
});

t.test('the table in docs/telemetry.md is the table of the program', async (t) => {
  const page = readFileSync(join(projectRoot, 'docs', 'telemetry.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(dsh_acp_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$/gm)];
  const documented = rows.map(([, name, kind, labels, help]) => [name, kind, labels?.trim(), help]);
  const own = metrics.map(({ name, kind, labels, help }) => [name, kind, labels.map((label) => `\`${label}\``).join(', '), help]);
  t.same(documented, [...own, ...histograms.map(({ name, help }) => [name, 'histogram', '', help])]);
});
