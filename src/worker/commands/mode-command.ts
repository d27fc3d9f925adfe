/**
 * `/mode [id]`: what the agent may do without asking.
 */
import { commandWords } from '../../shared/commands/command-words.ts';
import { ServerError } from '../../shared/errors.ts';
import { isPermissionMode, permissionModes } from '../../shared/session-choices.ts';
import type { ChoiceControl } from '../session/chosen-settings.ts';
import { choiceList } from './choice-list.ts';
import type { SessionCommand } from './session-command.ts';

export function modeCommand(choices: Pick<ChoiceControl, 'current' | 'setMode'>): SessionCommand {
  return {
    ...commandWords('mode'),
    run: async (args) => {
      const entries = Object.entries(permissionModes).map(([id, { description }]) => ({ id, description }));
      if (args === '') return { kind: 'text', text: choiceList('Mode', choices.current.mode, entries) };
      if (!isPermissionMode(args)) {
        throw new ServerError('INVALID_PARAMS', `There is no such mode. The modes are ${Object.keys(permissionModes).join(', ')}.`);
      }
      choices.setMode(args);
      return { kind: 'text', text: `The mode is now **${args}**: ${permissionModes[args].description}` };
    },
  };
}
