/**
 * `/compact [what to keep]`: replaces the conversation by a summary of it, now.
 */
import { commandWords } from '../../shared/commands/command-words.ts';
import { ServerError } from '../../shared/errors.ts';
import type { Compaction } from '../agent/compaction.ts';
import type { TurnEnd } from '../agent/turn.ts';
import type { SessionCommand } from './session-command.ts';

/** Ended by the cancel of the agent. */
export type Compact = (instructions: string) => Promise<{ readonly end: TurnEnd; readonly compaction: Compaction | undefined }>;

export function compactCommand(compact: Compact): SessionCommand {
  return {
    ...commandWords('compact'),
    run: async (args) => {
      const { end, compaction } = await compact(args);
      if (compaction?.kind === 'done') {
        const { before, after } = compaction;
        return {
          kind: 'text',
          text: `Summarized the conversation: about ${grouped(before)} tokens before, ${grouped(after)} after.`,
          usage: end.usage,
        };
      }
      const why = compaction?.why ?? whyEnded(end);
      throw new ServerError('MODEL_FAILED', `The conversation was not summarized: ${why}.`);
    },
  };
}

function whyEnded({ reason }: TurnEnd): string {
  if (reason.kind === 'error') return reason.message.replace(/\.$/, '');
  if (reason.kind === 'max-turn-requests') return `the budget of ${reason.budget} is spent`;
  return `it was ended (${reason.kind})`;
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
