/**
 * `/rewind`: goes back to before a prompt that the person chooses; without a choice it lists the prompts.
 */
import { ServerError } from '../../shared/errors.ts';
import { commandWords } from '../../shared/commands/command-words.ts';
import { outcomeText, promptLine } from '../undo/outcome-text.ts';
import type { PromptTurn } from '../undo/log-timeline.ts';
import { positiveNumber, rewindArguments } from './rewind-arguments.ts';
import type { SessionCommand } from './session-command.ts';
import type { UndoCommandParts } from './undo-command.ts';

const usage = '`/rewind <number of a prompt> [--force] [--no-files]`';
const mostListed = 50;

export function rewindCommand({ cwd, rewinder }: UndoCommandParts): SessionCommand {
  return {
    ...commandWords('rewind'),
    run: async (args, signal) => {
      const { word, force, files } = rewindArguments(args, usage);
      if (word === undefined) return { kind: 'text', text: promptList((await rewinder.timeline()).turns()) };
      const wanted = positiveNumber(word, usage);
      const outcome = await rewinder.rewind(() => wanted, { files, force, signal });
      if (outcome === undefined) {
        throw new ServerError(
          'INVALID_PARAMS',
          `Nothing was done: prompt ${wanted} is not part of the conversation. \`/rewind\` lists those that are.`,
        );
      }
      return { kind: 'text', text: outcomeText(outcome, { cwd, filesAsked: files }) };
    },
  };
}

function promptList(turns: readonly PromptTurn[]): string {
  if (turns.length === 0) return 'There is no prompt to go back to.';
  const shown = turns.slice(-mostListed);
  const earlier = turns.length > shown.length ? [`… ${turns.length - shown.length} earlier ones, which \`/rewind\` takes too\n`] : [];
  return [
    'The prompts of this conversation:',
    '',
    ...earlier,
    ...shown.map(promptLine),
    '',
    `To go back to before one of them: ${usage}.`,
  ].join('\n');
}
