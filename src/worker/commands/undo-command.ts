/**
 * `/undo`: takes the last prompts back, with what the file tools did for them.
 */
import { commandWords } from '../../shared/commands/command-words.ts';
import { outcomeText } from '../undo/outcome-text.ts';
import type { Rewinder } from '../undo/rewinder.ts';
import { positiveNumber, rewindArguments } from './rewind-arguments.ts';
import type { SessionCommand } from './session-command.ts';

export interface UndoCommandParts {
  readonly cwd: string;
  readonly rewinder: Rewinder;
}

const usage = '`/undo [n] [--force] [--no-files]`';

export function undoCommand({ cwd, rewinder }: UndoCommandParts): SessionCommand {
  return {
    ...commandWords('undo'),
    run: async (args, signal) => {
      const { word, force, files } = rewindArguments(args, usage);
      const prompts = word === undefined ? 1 : positiveNumber(word, usage);
      const outcome = await rewinder.undo(prompts, { files, force, signal });
      const text = outcome === undefined ? 'There is nothing to undo.' : outcomeText(outcome, { cwd, filesAsked: files });
      return { kind: 'text', text };
    },
  };
}
