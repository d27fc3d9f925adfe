/**
 * `/help`: the commands of the session.
 */
import { builtInCommands, commandWords, type CommandWords } from '../../shared/commands/command-words.ts';
import type { SessionCommand } from './session-command.ts';

export function helpCommand(fileCommands: (signal: AbortSignal) => Promise<readonly CommandWords[]>): SessionCommand {
  return {
    ...commandWords('help'),
    run: async (_args, signal) => {
      const files = await fileCommands(signal);
      const lists = [['Commands:', ...builtInCommands.map(line)]];
      if (files.length > 0) lists.push(['From files:', ...files.map(line)]);
      lists.push(['Anything else goes to the model, also a word with a slash that is not in this list.']);
      return { kind: 'text', text: lists.map((lines) => lines.join('\n')).join('\n\n') };
    },
  };
}

function line({ name, description, hint }: CommandWords): string {
  return `- \`/${name}${hint === undefined ? '' : ` [${hint}]`}\`: ${description}`;
}
