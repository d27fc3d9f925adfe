/**
 * Every setting of the server, in one table: the file's key, the flag, the variable, the type, the default and the
 * sentence that explains it all come from here.
 *
 * A key has one name everywhere: `max_threads` in `[threads]` of the file, `--max-threads`, `DSH_ACP_MAX_THREADS`.
 */

import type { KeySpec, Section, ValueType } from './key-spec.ts';

const week = 7 * 24 * 3600 * 1000;
const milliseconds = (min = 0, max = week) => ({ kind: 'integer', min, max }) as const;
const count = (min: number, max: number) => ({ kind: 'integer', min, max }) as const;
const amount = (max: number) => ({ kind: 'decimal', min: 0, max }) as const;
const line = (maxLength: number) => ({ kind: 'text', maxLength }) as const;

export const configKeys = {
  profile: {
    section: '',
    type: { kind: 'choice', values: ['editor', 'automation'] },
    default: 'editor',
    doc: 'What the client is shown: `editor` streams everything, `automation` sends committed text only.',
  },
  isolation: {
    section: '',
    type: { kind: 'choice', values: ['dedicated', 'strict', 'shared'] },
    default: undefined,
    defaultText: '`dedicated`; `shared` for the automation profile',
    doc: 'Sessions to threads: one thread each and sharing beyond max_threads, never sharing (newcomers wait), or all on a few threads.',
  },
  model: {
    section: '',
    type: {
      kind: 'word',
      pattern: /^(?:scripted|replay:\/.+|[^\s:][^\s]*)$/u,
      says: 'a model name, `scripted`, or `replay:/absolute/path`',
    },
    default: undefined,
    defaultText: '`deepseek-flash` when there is a key, else `scripted`',
    doc: 'The model that answers. `scripted` is built in and needs no key; `replay:/absolute/path` plays a recorded stream.',
  },
  system_prompt: {
    section: '',
    alias: 'systemPrompt',
    type: line(200_000),
    default: undefined,
    defaultText: 'the built-in text',
    doc: 'Takes the place of the built-in instructions to the model.',
  },
  agent_name: {
    section: '',
    alias: 'agentName',
    type: line(100),
    default: 'deepseek-harness-acp',
    doc: 'The name that `initialize` reports.',
  },
  agent_version: {
    section: '',
    alias: 'agentVersion',
    type: line(100),
    default: undefined,
    defaultText: 'the version of this package',
    doc: 'The version that `initialize` reports.',
  },
  state_dir: {
    section: '',
    type: { kind: 'path' },
    default: undefined,
    defaultText: '`$XDG_STATE_HOME/dsh-acp`, else `~/.local/state/dsh-acp`',
    doc: 'Where session logs and spilled output are kept (directories 0700, files 0600).',
  },
  log_level: {
    section: '',
    type: { kind: 'choice', values: ['silent', 'error', 'warn', 'info', 'debug'] },
    default: 'warn',
    doc: 'How much is written to stderr. Some clients show every line of it as an error.',
  },
  delegate: {
    section: '',
    type: { kind: 'choice', values: ['on', 'off'] },
    default: 'on',
    doc: 'Whether a session may delegate to further sessions of this server. `off` leaves only the agents of `[[subagents]]`; see docs/subagents.md.',
  },
  base_url: {
    section: 'provider',
    type: { kind: 'url' },
    default: undefined,
    defaultText: '`$DEEPSEEK_BASE_URL`, else `https://api.deepseek.com`',
    doc: 'Root of an OpenAI-compatible server, to which `/chat/completions` is added: `http://127.0.0.1:11434/v1` for Ollama.',
  },
  api_key: {
    section: 'provider',
    type: { kind: 'word', pattern: /^[\x21-\x7e]{1,4096}$/, says: 'printable ASCII without blanks' },
    default: undefined,
    defaultText: 'the variable that api_key_env names',
    doc: 'The key itself; in the file only if nobody else can read the file (mode 0600).',
    secret: true,
  },
  api_key_env: {
    section: 'provider',
    type: { kind: 'word', pattern: /^[A-Za-z_][A-Za-z0-9_]{0,199}$/, says: 'the name of an environment variable' },
    default: undefined,
    defaultText: '`DEEPSEEK_API_KEY` for DeepSeek, none for another base_url',
    doc: 'The variable that holds the key. The DeepSeek key is never sent to a base_url of yours unless this names it.',
  },
  dialect: {
    section: 'provider',
    type: { kind: 'choice', values: ['deepseek', 'generic'] },
    default: undefined,
    defaultText: '`deepseek` for DeepSeek, `generic` for another base_url',
    doc: "Whether DeepSeek's thinking fields are sent, or only what every server takes.",
  },
  context_window: {
    section: 'provider',
    type: count(1_024, 100_000_000),
    default: undefined,
    defaultText: '1000000 (deepseek), 128000 (generic)',
    doc: 'Tokens that the model can take in; older history is pruned before that.',
  },
  max_output_tokens: {
    section: 'provider',
    type: count(16, 10_000_000),
    default: undefined,
    defaultText: '256000 (deepseek), 16000 (generic)',
    doc: 'Tokens of one answer at most.',
  },
  thinking: {
    section: 'provider',
    type: { kind: 'choice', values: ['off', 'low', 'high', 'max'] },
    default: 'high',
    doc: 'How much the model thinks before it answers (deepseek dialect only).',
  },
  first_byte_timeout_ms: {
    section: 'provider',
    type: milliseconds(1),
    default: 600_000,
    doc: 'From the request to the first byte of the answer.',
  },
  idle_timeout_ms: {
    section: 'provider',
    type: milliseconds(1),
    default: 300_000,
    doc: 'Between two pieces of an answer; keep-alive comments do not count.',
  },
  max_retries: {
    section: 'provider',
    type: count(0, 100),
    default: 5,
    doc: 'Tries after the first for failures that may pass (429, 500, 503, connection).',
  },
  max_concurrency: {
    section: 'provider',
    type: count(1, 100_000),
    default: undefined,
    defaultText: '500 (deepseek), 1000 (generic)',
    doc: 'Model calls that run at once over all sessions; more wait, fairly between sessions. The limit of your account, or less.',
  },
  slow_start: {
    section: 'provider',
    type: count(1, 100_000),
    default: undefined,
    defaultText: '64; max_concurrency for a server on this machine',
    doc: 'Model calls that run at once at first, and after the provider was overloaded; each success allows one more.',
  },
  price_input: {
    section: 'provider',
    type: amount(1_000_000),
    default: undefined,
    defaultText: 'known for `deepseek-flash` and `deepseek-v4-pro` (peak prices of November 2026), else none',
    doc: 'US dollars per million input tokens that no cache held. With price_output it makes costs and cost budgets possible.',
  },
  price_output: {
    section: 'provider',
    type: amount(1_000_000),
    default: undefined,
    defaultText: 'as price_input',
    doc: 'US dollars per million output tokens, reasoning included.',
  },
  price_cache_read: {
    section: 'provider',
    type: amount(1_000_000),
    default: undefined,
    defaultText: 'as price_input; the value of price_input when only that is set',
    doc: 'US dollars per million input tokens that came from a cache.',
  },
  pace_ms: {
    section: 'provider',
    type: milliseconds(0, 60_000),
    default: 5,
    doc: 'Milliseconds between two words of the scripted model.',
  },
  max_threads: {
    section: 'threads',
    type: count(1, 1_024),
    default: undefined,
    defaultText: '64; the number of cores, at least 2, when shared',
    doc: 'Session threads at most. With `strict` this is also the hard limit of running turns.',
  },
  spare_threads: {
    section: 'threads',
    type: count(0, 64),
    default: undefined,
    defaultText: '2; 0 when shared',
    doc: 'Idle threads kept ready, so that a turn need not wait for one to start.',
  },
  park_after_ms: {
    section: 'threads',
    type: milliseconds(),
    default: 60_000,
    doc: 'An idle session leaves its thread after this long; 0 keeps it until the thread is wanted.',
  },
  attach_timeout_ms: {
    section: 'threads',
    type: milliseconds(100, 600_000),
    default: 15_000,
    doc: 'To put a session on a thread, replay of its log included.',
  },
  stuck_thread_ms: {
    section: 'threads',
    type: milliseconds(500, 600_000),
    default: 5_000,
    doc: 'A thread with running turns that shows no sign of life for this long is ended; its sessions are revived from their logs.',
  },
  max_running_turns: {
    section: 'limits',
    type: count(1, 100_000),
    default: 1_024,
    doc: 'Turns that run at once, over all sessions; more wait.',
  },
  overlap: {
    section: 'limits',
    type: { kind: 'choice', values: ['queue', 'reject'] },
    default: 'queue',
    doc: 'A prompt that comes while another of its session runs: waits, or is refused.',
  },
  max_queued_prompts: {
    section: 'limits',
    type: count(1, 10_000),
    default: 16,
    doc: 'Prompts that may wait in one session.',
  },
  max_frame_bytes: {
    section: 'limits',
    type: count(1_024, 512 * 1024 * 1024),
    default: 32 * 1024 * 1024,
    doc: 'The longest line that is taken from the client; a longer one is answered with an error and skipped.',
  },
  cancel_grace_ms: {
    section: 'limits',
    type: milliseconds(0, 60_000),
    default: 900,
    doc: 'From `session/cancel` to the end of a thread that does not react.',
  },
  shutdown_grace_ms: {
    section: 'limits',
    type: milliseconds(100, 600_000),
    default: 5_000,
    doc: 'For everything to end in order when the client goes or a signal comes.',
  },
  stalled_reader_ms: {
    section: 'limits',
    type: milliseconds(100),
    default: 30_000,
    doc: 'A client that reads nothing for this long, with output waiting, is taken as gone.',
  },
  command_timeout_ms: {
    section: 'limits',
    type: milliseconds(100),
    default: 120_000,
    doc: 'Time limit of one command that does not ask for another.',
  },
  max_parallel_tool_calls: {
    section: 'limits',
    type: count(1, 100),
    default: 10,
    doc: 'Tools of one step that run at the same time.',
  },
  max_steps: {
    section: 'budget',
    type: count(0, 1_000_000),
    default: 200,
    doc: 'Model calls of one turn; 0 is no limit.',
  },
  max_tool_calls: {
    section: 'budget',
    type: count(0, 1_000_000),
    default: 1_000,
    doc: 'Tool calls of one turn; 0 is no limit.',
  },
  max_tokens: {
    section: 'budget',
    type: count(0, 1_000_000_000_000),
    default: 0,
    doc: 'Input and output tokens of one turn, all steps together; 0 is no limit.',
  },
  max_wall_ms: {
    section: 'budget',
    type: milliseconds(),
    default: undefined,
    defaultText: '0; 3600000 for the automation profile',
    doc: 'Time of one turn; 0 is no limit.',
  },
  max_cost_usd: {
    section: 'budget',
    type: amount(1_000_000_000),
    default: 0,
    doc: 'US dollars of one turn, by the prices of the provider; 0 is no limit.',
  },
  permission_mode: {
    section: 'permissions',
    type: { kind: 'choice', values: ['ask', 'accept-edits', 'read-only', 'full-access'] },
    default: 'ask',
    doc: 'What a new session may do without asking.',
  },
  permission_timeout_ms: {
    section: 'permissions',
    type: milliseconds(),
    default: undefined,
    defaultText: '0; 300000 for the automation profile',
    doc: 'How long an unanswered permission request waits before it counts as refused; 0 waits for ever.',
  },
  policy_file: {
    section: 'permissions',
    type: { kind: 'path' },
    default: undefined,
    doc: 'Rules for unattended work (TOML or JSON): what is allowed, asked about or denied. See docs/policy.md.',
  },
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

export type KeyName = keyof typeof configKeys;

type ValueOf<T extends ValueType> = T extends { kind: 'integer' | 'decimal' }
  ? number
  : T extends { kind: 'choice'; values: readonly (infer V)[] }
    ? V
    : string;

/** Checked values, by key. A key that nobody set and that has no fixed default is absent. */
export type Settings = { -readonly [K in KeyName]?: ValueOf<(typeof configKeys)[K]['type']> | undefined };

export const keyNames = Object.keys(configKeys) as KeyName[];
export const sectionNames: readonly Section[] = ['provider', 'threads', 'limits', 'budget', 'permissions', 'telemetry'];

/** The row of a key, without the literal types of the table. */
export function specOf(name: KeyName): KeySpec {
  return configKeys[name];
}
