/**
 * The slash commands of one session, with what they need of it.
 */
import { randomUUID } from 'node:crypto';
import { toWireError } from '../../shared/errors.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import { CommandRunner } from '../commands/command-runner.ts';
import { FileCommands } from '../commands/file-commands.ts';
import { sessionCommands } from '../commands/session-commands.ts';
import type { UndoCommandParts } from '../commands/undo-command.ts';
import type { ChoiceControl } from './chosen-settings.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

export interface CommandSessionParts {
  readonly agent: ReactLoopAgent;
  readonly journal: SessionJournal;
  readonly choices: ChoiceControl;
  readonly undo: UndoCommandParts;
}

/** `undefined` where no person types: a text that begins with a slash is then a text like any other. */
export function createCommandRunner(task: SessionTask, thread: ThreadContext, parts: CommandSessionParts): CommandRunner | undefined {
  const { cwd, settings, audience } = task;
  if (settings.profile !== 'editor' || audience !== undefined) return undefined;
  const { agent, journal, choices, undo } = parts;
  const files = new FileCommands({ cwd, userDirectory: settings.userCommands });
  const commands = sessionCommands({
    usage: () => agent.usage(),
    compact: (instructions) => agent.compact(instructions),
    choices,
    undo,
    fileCommands: (signal) => files.list(signal),
  });
  return new CommandRunner({
    commands,
    files,
    journal,
    newId: randomUUID,
    onFault: (error) => void thread.main.log('error', `a command failed: ${toWireError(error).debug ?? ''}`),
  });
}
