/** The model server: `[provider]`. */
import type { KeySpec } from '../key-spec.ts';
import { amount, count, milliseconds } from '../value-types.ts';

export const providerKeys = {
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
    doc: 'Model calls that run at once at first; each success allows one more, and an overload halves them. See docs/telemetry.md.',
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
} as const satisfies Record<string, KeySpec>;
