/**
 * The one place that knows which adapters there are.
 */
import type { SessionSettings } from '../../shared/config.ts';
import type { Sampling } from '../../shared/session-options.ts';
import type { ModelAdapter } from './model-adapter.ts';
import { ReplayModel } from './replay-model.ts';
import { ScriptedModel } from './scripted-model.ts';
import { SwitchableModel } from './switchable-model.ts';

/**
 * Makes the adapter of one session. Cheap: connections are shared by the thread and opened by the first request.
 *
 * @throws ServerError CONFIG_INVALID for a base URL or a recording that cannot be used
 * @param sampling the session's, over the server's; models in this process have no use for it
 */
export function createModel(settings: Pick<SessionSettings, 'model' | 'models' | 'prices'>, sampling?: Sampling): ModelAdapter {
  const { model } = settings;
  if (model.kind === 'scripted') return new ScriptedModel(model.paceMs);
  if (model.kind === 'replay') return ReplayModel.open(model.path);
  return new SwitchableModel({
    ...settings,
    model: sampling === undefined ? model : { ...model, sampling: { ...model.sampling, ...sampling } },
  });
}
