/**
 * From the places a setting can come from to the one resolved configuration.
 *
 * Flag over variable over file over default. Everything is checked before the server does anything.
 */
import { isAbsolute, join } from 'node:path';
import type { LimiterConfig, ModelAccess, ServerConfig } from '../../shared/config.ts';
import { takesImages } from '../../shared/model-images.ts';
import { environmentSecrets } from '../../shared/environment-secrets.ts';
import type { PolicyRules } from '../../shared/policy-rules.ts';
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';
import { normalUrl } from './check-value.ts';
import { configError } from './config-error.ts';
import { type Given, type Layer, readEnvironment, readFlags, type Source, type Surroundings } from './layers.ts';
import { defaultRssMb, mebibyte } from './memory-default.ts';
import { offeredModels } from './offered-models.ts';
import { choosePrices, type PriceChoice, priceSettings } from './prices.ts';
import { sandboxSettings } from './sandbox-settings.ts';
import { type ConfigFile, readConfigFile, userConfigDirectory } from './read-config-file.ts';
import { configKeys, type KeyName, keyNames, type Settings, specOf } from './schema.ts';
import { type ModelChoice, selectModel, type StoredKeyLookup } from './select-model.ts';
import { readPolicyFile } from './policy/read-policy-file.ts';
import { availableSubagents } from './subagents/parse-subagents.ts';

export interface ConfigRequest extends Surroundings {
  readonly flags: ReadonlyMap<KeyName, string>;
  /** What `--config` named. */
  readonly file: string | undefined;
  /** Cores that this process may use. */
  readonly cores: number;
  /** Of this package; the default of agent_version. */
  readonly version: string;
  /** Absolute path of the ripgrep binary; absent when it is not installed, or is looked for later. */
  readonly ripgrepPath?: string | undefined;
  /** Looks for stored keys; absent where there are none. */
  readonly storedKey?: StoredKeyLookup;
}

/** A setting as it took effect; `value` is `undefined` where the key has no value at all. */
export interface EffectiveSetting {
  readonly name: KeyName;
  readonly value: string | number | undefined;
  readonly source: Source;
  readonly where: string;
}

export interface LoadedConfig {
  readonly config: ServerConfig;
  readonly settings: readonly EffectiveSetting[];
  readonly file: ConfigFile | undefined;
  readonly choice: ModelChoice;
  readonly prices: PriceChoice;
  /** What takes the place of the choice in new sessions once a key is stored; absent where that changes nothing. */
  readonly withKey?: ModelAccess;
}

function merge(layers: readonly Layer[]): Map<KeyName, Given> {
  const merged = new Map<KeyName, Given>();
  for (const layer of layers) for (const [name, given] of layer) merged.set(name, given);
  return merged;
}

function defaultStateDir(around: Surroundings): string {
  const xdg = around.env['XDG_STATE_HOME'] ?? '';
  if (isAbsolute(xdg)) return join(xdg, 'dsh-acp');
  if (isAbsolute(around.home)) return join(around.home, '.local', 'state', 'dsh-acp');
  throw configError({ key: 'state_dir', expected: 'a path, as this user has no home directory', where: '--state-dir is not given' });
}

function required<T>(value: T | undefined, name: KeyName): T {
  if (value === undefined) throw configError({ key: name, expected: 'a value', where: 'defaults' });
  return value;
}

/** The values of keys whose defaults hang on other keys. */
function complete(given: Settings, request: ConfigRequest): Settings {
  const automation = given.profile === 'automation';
  const isolation = given.isolation ?? (automation ? 'shared' : 'dedicated');
  const shared = isolation === 'shared';
  return {
    ...given,
    isolation,
    max_threads: given.max_threads ?? (shared ? Math.max(2, request.cores) : 64),
    spare_threads: given.spare_threads ?? (shared ? 0 : 2),
    otlp_endpoint: given.otlp_endpoint ?? normalUrl(request.env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? ''),
    max_thread_mb: given.max_thread_mb ?? (shared ? 4_096 : 1_024),
    max_rss_mb: given.max_rss_mb ?? defaultRssMb(),
    max_wall_ms: given.max_wall_ms ?? (automation ? 3_600_000 : 0),
    max_retry_after_ms: given.max_retry_after_ms ?? (automation ? 900_000 : 60_000),
    permission_timeout_ms: given.permission_timeout_ms ?? (automation ? 300_000 : 0),
    agent_version: given.agent_version ?? request.version,
    state_dir: given.state_dir ?? defaultStateDir(request),
  };
}

function limiterOf(all: Settings, { model }: ModelChoice): LimiterConfig {
  const remote = model.kind === 'openai-compatible' && !isLoopback(model.baseUrl);
  const deepseek = model.kind === 'openai-compatible' && model.dialect === 'deepseek';
  const maxConcurrency = all.max_concurrency ?? (deepseek ? 500 : 1_000);
  const slowStart = Math.min(maxConcurrency, all.slow_start ?? (remote ? 64 : maxConcurrency));
  return { maxConcurrency, slowStart, maxPauseMs: required(all.max_retry_after_ms, 'max_retry_after_ms') };
}

function isLoopback(baseUrl: string): boolean {
  return /^(?:127(?:\.\d+){3}|localhost|\[::1\])$/.test(new URL(baseUrl).hostname);
}

/** What the chosen model says about its own keys, for `dsh-acp config`. */
function modelSettings({ model, models, keyVariable }: ModelChoice): Settings {
  if (model.kind === 'scripted') return { model: 'scripted' };
  if (model.kind === 'replay') return { model: `replay:${model.path}` };
  return {
    model: model.model,
    models: models.join(','),
    base_url: model.baseUrl,
    dialect: model.dialect,
    context_window: model.contextWindow,
    max_output_tokens: model.maxOutputTokens,
    model_images: takesImages(model) ? 'on' : 'off',
    api_key_env: keyVariable,
    api_key: model.apiKey,
  };
}

function toServerConfig(
  all: Settings & { readonly subagents: readonly SubagentProvider[]; readonly policy: PolicyRules | undefined },
  choice: ModelChoice,
  request: ConfigRequest,
): ServerConfig {
  const need = <K extends KeyName>(name: K) => required(all[name], name) as NonNullable<Settings[K]>;
  const profile = need('profile');
  return {
    profile,
    isolation: need('isolation'),
    maxThreads: need('max_threads'),
    spareThreads: Math.min(need('spare_threads'), need('max_threads')),
    maxRunningTurns: need('max_running_turns'),
    overlap: need('overlap'),
    maxQueuedPrompts: need('max_queued_prompts'),
    maxFrameBytes: need('max_frame_bytes'),
    parkAfterMs: need('park_after_ms'),
    attachTimeoutMs: need('attach_timeout_ms'),
    stuckThreadMs: need('stuck_thread_ms'),
    cancelGraceMs: need('cancel_grace_ms'),
    shutdownGraceMs: need('shutdown_grace_ms'),
    stalledReaderMs: need('stalled_reader_ms'),
    maxThreadBytes: need('max_thread_mb') * mebibyte,
    maxRssBytes: need('max_rss_mb') * mebibyte,
    stateDir: need('state_dir'),
    sandbox: sandboxSettings(all),
    lookOnly: need('look_only') === 'on',
    agentName: need('agent_name'),
    agentVersion: need('agent_version'),
    logLevel: need('log_level'),
    // The limits of the provider that a key would lead to: the built-in model has none.
    limiter: limiterOf(all, choice.withKey ?? choice),
    metricsPort: all.metrics_port,
    otlpEndpoint: all.otlp_endpoint,
    supervise: need('supervise') === 'on',
    maxRestarts: need('max_restarts'),
    stuckServerMs: need('stuck_server_ms'),
    session: {
      profile,
      model: choice.model,
      models: offeredModels(all, choice),
      systemPrompt: all.system_prompt,
      titles: need('titles'),
      instructions: need('instructions'),
      userInstructions: inUserDirectory(request, 'AGENTS.md'),
      userCommands: inUserDirectory(request, 'commands'),
      clientFiles: need('client_files'),
      mode: need('permission_mode'),
      permissionTimeoutMs: need('permission_timeout_ms'),
      budget: {
        maxSteps: need('max_steps'),
        maxToolCalls: need('max_tool_calls'),
        maxTokens: need('max_tokens'),
        maxWallMs: need('max_wall_ms'),
        maxCostUsd: need('max_cost_usd'),
      },
      maxSessionBytes: need('max_session_mb') * mebibyte,
      maxParallelToolCalls: need('max_parallel_tool_calls'),
      maxUpdatesPerSecond: need('max_updates_per_second'),
      commandTimeoutMs: need('command_timeout_ms'),
      mcp: {
        connectMs: need('mcp_connect_timeout_ms'),
        firstWaitMs: need('mcp_first_wait_ms'),
        callMs: need('mcp_call_timeout_ms'),
        idleMs: need('mcp_idle_ms'),
      },
      ripgrepPath: request.ripgrepPath,
      environmentSecrets: environmentSecrets(request.env, all.api_key_env === undefined ? [] : [all.api_key_env]),
      policy: all.policy,
      prices: choosePrices(all, choice.model).prices,
      subagents: availableSubagents(all.subagents, need('delegate')),
      undo: need('undo'),
      trace: all.otlp_endpoint !== undefined,
    },
  };
}

function inUserDirectory(around: Surroundings, name: string): string | undefined {
  const directory = userConfigDirectory(around);
  return directory === undefined ? undefined : join(directory, name);
}

function accessOf(settings: Settings, choice: ModelChoice): ModelAccess {
  const { model } = choice;
  return { model, models: offeredModels(settings, choice), prices: choosePrices(settings, model).prices };
}

/**
 * Resolves the whole configuration.
 *
 * @throws ServerError CONFIG_INVALID for the first thing that is wrong, in the order file, environment, flags
 */
export async function loadConfig(request: ConfigRequest): Promise<LoadedConfig> {
  const file = await readConfigFile(request.file, request);
  const given = merge([file?.layer ?? new Map<KeyName, Given>(), readEnvironment(request), readFlags(request.flags, request)]);
  const values: Record<string, string | number | undefined> = {};
  for (const name of keyNames) values[name] = given.get(name)?.value ?? specOf(name).default;
  // Each value was checked against its own row of the table.
  const completed = complete(values, request);
  const choice = selectModel(completed, request.env, request.storedKey);
  const prices = choosePrices(completed, choice.model);
  const effective: Settings = { ...completed, ...modelSettings(choice), ...priceSettings(prices) };
  const settings = keyNames.map((name): EffectiveSetting => {
    const from = given.get(name);
    return {
      name,
      value: effective[name],
      source: from?.source ?? 'default',
      where: from?.where ?? (configKeys[name].default === undefined ? 'derived' : 'default'),
    };
  });
  const policy = await readPolicyFile(completed.policy_file, given.get('policy_file')?.where ?? 'default');
  return {
    config: toServerConfig({ ...completed, subagents: file?.subagents ?? [], policy }, choice, request),
    settings,
    file,
    choice,
    prices,
    ...(choice.withKey === undefined ? {} : { withKey: accessOf(completed, choice.withKey) }),
  };
}
