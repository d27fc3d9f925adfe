/** Chooses the model: what is configured, else DeepSeek when there is a key, else the built-in scripted model. */
import { isAbsolute } from 'node:path';
import type { ModelConfig } from '../../shared/config.ts';
import type { Sampling } from '../../shared/session-options.ts';
import { normalUrl } from './check-value.ts';
import { configError } from './config-error.ts';
import type { Settings } from './schema.ts';

export interface ModelChoice {
  readonly model: ModelConfig;
  /** Names of further models of the same server that a client may choose. */
  readonly models: readonly string[];
  /** One sentence for people: why this one. Holds no key. */
  readonly why: string;
  /** The variable that the key was taken from, or would be. */
  readonly keyVariable: string | undefined;
  /** What is chosen as soon as there is a key; only where the want of one decided. */
  readonly withKey?: ModelChoice;
}

/** Whether a key is stored for a model server; in words why it is not used, where that is not plain. */
export type StoredKeyLookup = (baseUrl: string) => { readonly stored: boolean; readonly reason?: string };

const nothingStored: StoredKeyLookup = () => ({ stored: false });

type Environment = Readonly<Record<string, string | undefined>>;

const deepseekUrl = 'https://api.deepseek.com';
const deepseekModel = 'deepseek-flash';
/** What DeepSeek serves (November 2026). */
const deepseekModels = [deepseekModel, 'deepseek-v4-pro'];
const deepseekKey = 'DEEPSEEK_API_KEY';

function isDeepseekUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'deepseek.com' || hostname.endsWith('.deepseek.com');
}

/** A key goes into a header: a line break in it would be an error deep in the HTTP client. */
function readKey(variable: string, env: Environment): string | undefined {
  const key = env[variable]?.trim();
  if (key === undefined || key === '') return undefined;
  if (/^[\x21-\x7e]{1,4096}$/.test(key)) return key;
  throw configError({ key: variable, expected: 'a key of printable ASCII without blanks', where: 'environment' });
}

function deepseekBase(env: Environment): string {
  const given = env['DEEPSEEK_BASE_URL'];
  if (given === undefined || given === '') return deepseekUrl;
  const url = normalUrl(given);
  if (url === undefined)
    throw configError({ key: 'DEEPSEEK_BASE_URL', expected: 'an http or https URL without user, query or fragment', where: 'environment' });
  return url;
}

function samplingOf({ temperature, top_p: topP, seed }: Settings): { readonly sampling?: Sampling } {
  const given = Object.entries({ temperature, topP, seed }).filter(([, value]) => value !== undefined);
  return given.length === 0 ? {} : { sampling: Object.fromEntries(given) };
}

function furtherModels({ models }: Settings, isDeepseek: boolean): readonly string[] {
  if (models === undefined) return isDeepseek ? deepseekModels : [];
  return models === '' ? [] : models.split(',');
}

function remote(settings: Settings, env: Environment): ModelChoice {
  const own = settings.base_url;
  const baseUrl = own ?? deepseekBase(env);
  const isDeepseek = own === undefined || isDeepseekUrl(own);
  const dialect = settings.dialect ?? (isDeepseek ? 'deepseek' : 'generic');
  const model = settings.model ?? (isDeepseek ? deepseekModel : undefined);
  if (model === undefined)
    throw configError({
      key: 'model',
      expected: "the name of one of that server's models beside base_url",
      where: `base_url is ${baseUrl}`,
    });
  // DeepSeek's key is for DeepSeek: another server gets a key only when it is named for it.
  const keyVariable = settings.api_key_env ?? (isDeepseek ? deepseekKey : undefined);
  const apiKey = settings.api_key ?? (keyVariable === undefined ? undefined : readKey(keyVariable, env));
  const config: ModelConfig = {
    kind: 'openai-compatible',
    dialect,
    baseUrl,
    model,
    apiKey,
    contextWindow: settings.context_window ?? (dialect === 'deepseek' ? 1_000_000 : 128_000),
    maxOutputTokens: settings.max_output_tokens ?? (dialect === 'deepseek' ? 256_000 : 16_000),
    thinking: settings.thinking ?? 'high',
    ...(settings.model_images === undefined ? {} : { images: settings.model_images }),
    ...samplingOf(settings),
    firstByteTimeoutMs: settings.first_byte_timeout_ms ?? 600_000,
    idleTimeoutMs: settings.idle_timeout_ms ?? 300_000,
    maxRetries: settings.max_retries ?? 5,
    maxRetryAfterMs: settings.max_retry_after_ms ?? 60_000,
  };
  const why =
    settings.model !== undefined || own !== undefined
      ? 'configured'
      : apiKey === undefined
        ? 'there is a stored key'
        : `there is a key in ${settings.api_key === undefined ? keyVariable : 'api_key'}`;
  return { model: config, models: furtherModels(settings, isDeepseek).filter((name) => name !== model), why, keyVariable };
}

/**
 * @throws ServerError CONFIG_INVALID when a base_url stands without a model, a replay path is not absolute, or a
 * variable of the environment that is needed holds something unusable
 */
export function selectModel(settings: Settings, env: Environment, storedKey: StoredKeyLookup = nothingStored): ModelChoice {
  const { model } = settings;
  if (model === 'scripted')
    return { model: { kind: 'scripted', paceMs: settings.pace_ms ?? 0 }, models: [], why: 'configured', keyVariable: undefined };
  if (model?.startsWith('replay:') === true) {
    const path = model.slice('replay:'.length);
    if (!isAbsolute(path)) throw configError({ key: 'model', expected: 'replay: with an absolute path', came: model, where: 'model' });
    return { model: { kind: 'replay', path }, models: [], why: 'configured', keyVariable: undefined };
  }
  const keyVariable = settings.api_key_env ?? deepseekKey;
  const hasKey = settings.api_key !== undefined || readKey(keyVariable, env) !== undefined;
  const withKey = remote(settings, env);
  if (model !== undefined || settings.base_url !== undefined || hasKey) return withKey;
  const { stored, reason } = storedKey(deepseekBase(env));
  if (stored) return withKey;
  return {
    model: { kind: 'scripted', paceMs: settings.pace_ms ?? 0 },
    models: [],
    why: `no model is configured, ${keyVariable} is not set, and ${reason ?? 'no key is stored'}`,
    keyVariable: undefined,
    withKey,
  };
}
