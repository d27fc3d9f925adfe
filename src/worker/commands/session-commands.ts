/**
 * The table of built-in slash commands: the only place that knows them all. What each one needs of its session comes in
 * {@link SessionCommandParts}; its words stand in `src/shared/commands/command-words.ts`, where main reads them too.
 */
import type { CommandWords } from '../../shared/commands/command-words.ts';
import { costCommand, type UsageReport } from './cost-command.ts';
import { helpCommand } from './help-command.ts';
import type { SessionCommand } from './session-command.ts';

/** What the commands need of their session. A new command adds its own part here; `attached-agent.ts` gives it. */
export interface SessionCommandParts {
  readonly usage: () => UsageReport;
  /** The commands that Markdown files make, as they are now. */
  readonly fileCommands: (signal: AbortSignal) => Promise<readonly CommandWords[]>;
}

/** One per name of `command-words.ts`, in any order. */
export function sessionCommands(parts: SessionCommandParts): readonly SessionCommand[] {
  return [helpCommand(parts.fileCommands), costCommand(parts.usage)];
}
