/**
 * The one place that knows which adapters there are.
 */
import type { ModelConfig } from '../../shared/config.ts';
import type { Sampling } from '../../shared/session-options.ts';
import type { ModelAdapter } from './model-adapter.ts';
import { OpenAiChatModel } from './openai-chat.ts';
import { ReplayModel } from './replay-model.ts';
import { ScriptedModel } from './scripted-model.ts';

/**
 * Makes the adapter of one session. Cheap: connections are shared by the thread and opened by the first request.
 *
 * @throws ServerError CONFIG_INVALID for a base URL or a recording that cannot be used
 * @param sampling the session's, over the server's; models in this process have no use for it
 */
export function createModel(config: ModelConfig, sampling?: Sampling): ModelAdapter {
  if (config.kind === 'scripted') return new ScriptedModel(config.paceMs);
  if (config.kind === 'replay') return ReplayModel.open(config.path);
  return new OpenAiChatModel(sampling === undefined ? config : { ...config, sampling: { ...config.sampling, ...sampling } });
}
