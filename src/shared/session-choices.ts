/**
 * What can be chosen while a session runs: the permission mode, the model, how much it thinks, whether that is shown. The one
 * place that knows which choices there are and what they mean, for main and for the session threads.
 */
import type { SessionConfigOption } from '@agentclientprotocol/sdk';
import type { ModelConfig, SessionSettings } from './config.ts';
import type { LogEvent, PermissionMode } from './events.ts';

export type ThoughtLevel = 'off' | 'low' | 'high' | 'max';

/** What was chosen beside the mode. A member that is absent is as the settings have it. */
export interface SessionChoices {
  /** One of the models that the settings offer. */
  readonly model?: string;
  /** Only where the model's dialect has levels. */
  readonly thoughtLevel?: ThoughtLevel;
  /** Whether the client is shown what the model thinks. */
  readonly showThoughts?: boolean;
}

/** What holds for a session now, as its log has it. */
export interface Chosen {
  readonly mode: PermissionMode;
  readonly choices: SessionChoices;
  /** The `seq` of the event that made it so, -1 before the first: of two states the one with the greater is newer. */
  readonly revision: number;
}

/** The settings that choices go over. */
export type ChoiceSettings = Pick<SessionSettings, 'model' | 'models'>;

export const permissionModes: Record<PermissionMode, { readonly name: string; readonly description: string }> = {
  ask: { name: 'Ask', description: 'Commands ask first, and so do writes outside the workspace or to control files.' },
  'accept-edits': { name: 'Accept edits', description: 'File edits run without asking, control files excepted; commands ask.' },
  'read-only': { name: 'Read only', description: 'Nothing is changed and no command runs.' },
  plan: { name: 'Plan', description: 'Reads and searches only, until you approve a plan.' },
  'full-access': { name: 'Full access', description: 'Everything runs without asking.' },
};

const thoughtLevels: Record<ThoughtLevel, string> = {
  off: 'Answers without thinking first.',
  low: 'Thinks a little.',
  high: 'Thinks before it answers.',
  max: 'Thinks as much as it can; slow and dear.',
};

export function isPermissionMode(text: string): text is PermissionMode {
  return Object.hasOwn(permissionModes, text);
}

export function isThoughtLevel(text: string): text is ThoughtLevel {
  return Object.hasOwn(thoughtLevels, text);
}

/** The names of all models that may be chosen, the configured one first. */
export function offeredModels({ model, models = [] }: ChoiceSettings): readonly string[] {
  const own = modelName(model);
  return [own, ...models.map(({ name }) => name).filter((name) => name !== own)];
}

/** Whether the model can be told how much to think. */
export function hasThoughtLevels({ model }: Pick<ChoiceSettings, 'model'>): boolean {
  return model.kind === 'openai-compatible' && model.dialect === 'deepseek';
}

/** The choices that these settings allow: a log may hold what was offered once and is not any more. */
export function allowedChoices(settings: ChoiceSettings, { model, thoughtLevel, showThoughts }: SessionChoices): SessionChoices {
  return {
    ...(model !== undefined && offeredModels(settings).includes(model) ? { model } : {}),
    ...(thoughtLevel !== undefined && hasThoughtLevels(settings) ? { thoughtLevel } : {}),
    ...(showThoughts === undefined ? {} : { showThoughts }),
  };
}

/** What holds after an event of the log. */
export function chosenAfter(chosen: Chosen, event: LogEvent): Chosen {
  if (event.type === 'mode/change') return { ...chosen, mode: event.data.mode, revision: event.seq };
  if (event.type === 'options/change') return { ...chosen, choices: { ...chosen.choices, ...event.data }, revision: event.seq };
  return chosen;
}

/** The model's settings with the choices laid over them. */
export function chosenModel({ model: configured, models }: ChoiceSettings, choices: SessionChoices): ModelConfig {
  if (configured.kind !== 'openai-compatible') return configured;
  const { model = configured.model, thoughtLevel = configured.thinking } = allowedChoices(
    { model: configured, ...(models === undefined ? {} : { models }) },
    choices,
  );
  const { images, ...rest } = configured;
  // What was said of the configured model's eyes does not hold for another one.
  const sees = images === undefined || model !== configured.model ? {} : { images };
  return { ...rest, ...sees, model, thinking: thoughtLevel };
}

/**
 * Every choice with its current value, as ACP's `configOptions`; always the whole list, in the order in which it is shown.
 *
 * @param booleans whether the client can show a switch
 */
export function configOptions(
  settings: ChoiceSettings,
  { mode, choices }: Pick<Chosen, 'mode' | 'choices'>,
  booleans: boolean,
): SessionConfigOption[] {
  const model = chosenModel(settings, choices);
  const options: SessionConfigOption[] = [
    {
      type: 'select',
      id: 'mode',
      name: 'Mode',
      description: 'What the agent may do without asking.',
      category: 'mode',
      currentValue: mode,
      options: Object.entries(permissionModes).map(([value, words]) => ({ value, ...words })),
    },
    {
      type: 'select',
      id: 'model',
      name: 'Model',
      description: 'The model that answers from the next step on.',
      category: 'model',
      currentValue: modelName(model),
      options: offeredModels(settings).map((name) => ({ value: name, name })),
    },
  ];
  if (model.kind === 'openai-compatible' && hasThoughtLevels(settings)) {
    options.push({
      type: 'select',
      id: 'thought_level',
      name: 'Thinking',
      description: 'How much the model thinks before it answers.',
      category: 'thought_level',
      currentValue: model.thinking,
      options: Object.entries(thoughtLevels).map(([value, description]) => ({ value, name: capitalized(value), description })),
    });
  }
  if (booleans) {
    options.push({
      type: 'boolean',
      id: 'show_thoughts',
      name: 'Show thoughts',
      description: 'Whether the thoughts of the model are shown as they come.',
      category: 'model_config',
      currentValue: choices.showThoughts ?? true,
    });
  }
  return options;
}

/** The name of the model that answers. */
export function chosenModelName(settings: ChoiceSettings, choices: SessionChoices): string {
  return modelName(chosenModel(settings, choices));
}

function modelName(model: ModelConfig): string {
  return model.kind === 'openai-compatible' ? model.model : model.kind;
}

function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
