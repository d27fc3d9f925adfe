/** Whether the chosen model can be reached with the key that would be used. The key itself is never shown. */
import { stat } from 'node:fs/promises';
import type { ModelConfig } from '../../../shared/config.ts';
import type { ModelChoice } from '../../config/select-model.ts';
import type { FoundKey, KeyStore } from '../../credentials/key-store.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { getJson, readModelList } from './get-json.ts';

const timeoutMs = 3_000;

type RemoteModel = Extract<ModelConfig, { kind: 'openai-compatible' }>;

async function checkReplay(path: string): Promise<Finding> {
  try {
    if ((await stat(path)).isFile()) return ok('model', `replay of ${path}`);
  } catch {
    // Not there, or not to be read: the same advice helps.
  }
  return fail('model', `there is no recorded stream ${path}`, 'Give the absolute path of a recorded stream after replay:.');
}

/** Of the settings and the environment, else the stored one. */
async function keyFor(model: RemoteModel, keys: Pick<KeyStore, 'find'> | undefined): Promise<FoundKey> {
  if (model.apiKey !== undefined) return { kind: 'key', key: model.apiKey, from: 'the settings or the environment' };
  return (await keys?.find(model.baseUrl)) ?? { kind: 'none' };
}

async function checkRemote(
  model: RemoteModel,
  keyVariable: string | undefined,
  keys: Pick<KeyStore, 'find'> | undefined,
): Promise<Finding> {
  const subject = `${model.model} at ${model.baseUrl}`;
  const found = await keyFor(model, keys);
  if (found.kind !== 'key' && model.dialect === 'deepseek') {
    const why = found.kind === 'unusable' ? found.reason : 'no key';
    return fail(
      'model',
      `${subject}: ${why}`,
      `Set ${keyVariable ?? 'DEEPSEEK_API_KEY'} in the environment of the server, or run dsh-acp login.`,
    );
  }
  const headers = found.kind === 'key' ? { authorization: `Bearer ${found.key}` } : {};
  const result = await getJson(`${model.baseUrl}/models`, { timeoutMs, headers });
  if (result.kind === 'failed')
    return fail('model', `${subject}: not reached (${result.reason})`, 'Check --base-url, and that the server runs.');
  if (result.status === 401 || result.status === 403) {
    return fail(
      'model',
      `${subject}: the key was refused (${result.status})`,
      model.apiKey === undefined && found.kind === 'key'
        ? `It is the stored one, of ${found.from}: run dsh-acp login again.`
        : `Check the key in ${keyVariable ?? 'api_key, or name its variable with --api-key-env'}.`,
    );
  }
  const models = readModelList(result.json);
  if (result.status !== 200 || models === undefined) {
    return warn(
      'model',
      `${subject}: answers, but gives no list of models (status ${result.status})`,
      'If prompts fail, check --base-url: for most servers it ends with /v1.',
    );
  }
  if (models.some((listed) => listed.id === model.model)) return ok('model', `${subject}, ${model.dialect} dialect`);
  const known = models.slice(0, 8).map((listed) => listed.id);
  return warn(
    'model',
    `${subject}: not in the server's list`,
    `It lists ${known.length === 0 ? 'none' : known.join(', ')}; choose with --model.`,
  );
}

/** @param keys where stored keys are */
export async function checkModel(choice: ModelChoice, keys?: Pick<KeyStore, 'find'>): Promise<Finding> {
  const { model, why } = choice;
  switch (model.kind) {
    case 'scripted':
      return ok('model', `scripted, built in (${why}); it runs commands written in the prompt`);
    case 'replay':
      return await checkReplay(model.path);
    case 'openai-compatible':
    default:
      return await checkRemote(model, choice.keyVariable, keys);
  }
}
