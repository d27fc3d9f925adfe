/**
 * What is said of the built-in slash commands: main advertises them, the session thread runs them, and neither may name one
 * that the other does not know.
 */

export interface CommandWords {
  /** Without the slash. */
  readonly name: string;
  /** One line. */
  readonly description: string;
  /** What may stand behind the name; absent where nothing may. */
  readonly hint?: string;
}

/** In the order in which they are shown. A command is added here and in `src/worker/commands/session-commands.ts`; a test compares both. */
const builtIn = {
  help: { description: 'List the commands of this session' },
  compact: { description: 'Summarize the conversation now, to make room', hint: 'what the summary should keep' },
  cost: { description: 'Show what this session and its last turn have used' },
  mode: { description: 'Show or set what may be done without asking', hint: 'ask, accept-edits, read-only, plan or full-access' },
  model: { description: 'Show or set the model that answers', hint: 'name' },
  plan: { description: 'Make a plan before anything is changed', hint: 'task' },
  undo: { description: 'Undo the last prompts and their changes of files', hint: 'number of prompts, --force, --no-files' },
  redo: { description: 'Take the last undo back', hint: '--force, --no-files' },
  rewind: { description: 'Go back to before a prompt, or list the prompts', hint: 'number of the prompt, --force, --no-files' },
} satisfies Record<string, Omit<CommandWords, 'name'>>;

export type BuiltInCommand = keyof typeof builtIn;

/** The words of one command, for the file that runs it. */
export function commandWords(name: BuiltInCommand): CommandWords {
  return { name, ...builtIn[name] };
}

export const builtInCommands: readonly CommandWords[] = Object.entries(builtIn).map(([name, words]) => ({ name, ...words }));

export function isBuiltInCommand(name: string): name is BuiltInCommand {
  return Object.hasOwn(builtIn, name);
}
