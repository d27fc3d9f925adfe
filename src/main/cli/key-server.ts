/** Which model server a stored key is for: the configured one, or the one that a key would turn on. */
import type { ModelConfig } from '../../shared/config.ts';
import type { LoadedConfig } from '../config/load-config.ts';

export type RemoteModel = Extract<ModelConfig, { kind: 'openai-compatible' }>;

/** `undefined` where the configured model needs no key. */
export function keyServerOf({ choice }: Pick<LoadedConfig, 'choice'>): RemoteModel | undefined {
  const { model } = choice.withKey ?? choice;
  return model.kind === 'openai-compatible' ? model : undefined;
}

/** The variable that the key may come from instead. */
export function keyVariableOf(loaded: Pick<LoadedConfig, 'choice'>): string {
  const { choice } = loaded;
  // Without a server it is the one that would turn DeepSeek on.
  return (choice.withKey ?? choice).keyVariable ?? (keyServerOf(loaded) === undefined ? 'DEEPSEEK_API_KEY' : 'DSH_ACP_API_KEY');
}

/** Where it is said that a key of the settings goes before the stored one; `undefined` where there is none. */
export function keyBefore(loaded: Pick<LoadedConfig, 'choice' | 'settings'>): string | undefined {
  if (keyServerOf(loaded)?.apiKey === undefined) return undefined;
  const setting = loaded.settings.find(({ name, source }) => name === 'api_key' && source !== 'default');
  return setting?.where ?? keyVariableOf(loaded);
}
