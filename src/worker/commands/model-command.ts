/**
 * `/model [name]`: which model answers from the next step on.
 */
import { commandWords } from '../../shared/commands/command-words.ts';
import { ServerError } from '../../shared/errors.ts';
import { chosenModelName, offeredModels } from '../../shared/session-choices.ts';
import type { ChoiceControl } from '../session/chosen-settings.ts';
import { choiceList } from './choice-list.ts';
import type { SessionCommand } from './session-command.ts';

export function modelCommand(choices: Pick<ChoiceControl, 'settings' | 'current' | 'setChoices'>): SessionCommand {
  return {
    ...commandWords('model'),
    run: async (args) => {
      const { settings, current } = choices;
      const names = offeredModels(settings);
      const list = names.map((id) => ({ id }));
      if (args === '') return { kind: 'text', text: choiceList('Model', chosenModelName(settings, current.choices), list) };
      if (!names.includes(args))
        throw new ServerError('INVALID_PARAMS', `There is no such model here. The models are ${names.join(', ')}.`);
      choices.setChoices({ model: args });
      return { kind: 'text', text: `**${args}** answers from now on.` };
    },
  };
}
