/**
 * `/redo`: takes the last undo or rewind back.
 */
import { ServerError } from '../../shared/errors.ts';
import { commandWords } from '../../shared/commands/command-words.ts';
import { outcomeText } from '../undo/outcome-text.ts';
import { rewindArguments } from './rewind-arguments.ts';
import type { SessionCommand } from './session-command.ts';
import type { UndoCommandParts } from './undo-command.ts';

const usage = '`/redo [--force] [--no-files]`';

export function redoCommand({ cwd, rewinder }: UndoCommandParts): SessionCommand {
  return {
    ...commandWords('redo'),
    run: async (args, signal) => {
      const { word, force, files } = rewindArguments(args, usage);
      if (word !== undefined) throw new ServerError('INVALID_PARAMS', `Nothing was done: one undo is taken back at a time. Say ${usage}.`);
      const outcome = await rewinder.redo({ files, force, signal });
      const text =
        outcome === undefined
          ? 'There is nothing to bring back: nothing was undone since the last prompt.'
          : outcomeText(outcome, { cwd, filesAsked: files });
      return { kind: 'text', text };
    },
  };
}
