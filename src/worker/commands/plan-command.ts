/**
 * `/plan [task]`: plan mode, and the task as its first prompt.
 */
import { commandWords } from '../../shared/commands/command-words.ts';
import type { ChoiceControl } from '../session/chosen-settings.ts';
import type { SessionCommand } from './session-command.ts';

export function planCommand(choices: Pick<ChoiceControl, 'setMode'>): SessionCommand {
  return {
    ...commandWords('plan'),
    run: async (args) => {
      choices.setMode('plan');
      if (args !== '') return { kind: 'prompt', content: [{ type: 'text', text: args }] };
      return { kind: 'text', text: 'Plan mode is on: nothing is changed until you approve a plan. Say what is to be planned.' };
    },
  };
}
