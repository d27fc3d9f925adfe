/**
 * The table of built-in slash commands: the only place that knows them all. What each one needs of its session comes in
 * {@link SessionCommandParts}; its words stand in `src/shared/commands/command-words.ts`, where main reads them too.
 */
import type { CommandWords } from '../../shared/commands/command-words.ts';
import type { UsageReport } from '../agent/usage-report.ts';
import { type Compact, compactCommand } from './compact-command.ts';
import { costCommand } from './cost-command.ts';
import type { ChoiceControl } from '../session/chosen-settings.ts';
import { helpCommand } from './help-command.ts';
import { modeCommand } from './mode-command.ts';
import { modelCommand } from './model-command.ts';
import { planCommand } from './plan-command.ts';
import { redoCommand } from './redo-command.ts';
import { rewindCommand } from './rewind-command.ts';
import type { SessionCommand } from './session-command.ts';
import { undoCommand, type UndoCommandParts } from './undo-command.ts';

/** What the commands need of their session. A new command adds its own part here; `attached-agent.ts` gives it. */
export interface SessionCommandParts {
  readonly usage: () => UsageReport;
  readonly choices: ChoiceControl;
  readonly compact: Compact;
  readonly undo: UndoCommandParts;
  /** The commands that Markdown files make, as they are now. */
  readonly fileCommands: (signal: AbortSignal) => Promise<readonly CommandWords[]>;
}

/** One per name of `command-words.ts`, in any order. */
export function sessionCommands(parts: SessionCommandParts): readonly SessionCommand[] {
  return [
    helpCommand(parts.fileCommands),
    compactCommand(parts.compact),
    costCommand(parts.usage),
    modeCommand(parts.choices),
    modelCommand(parts.choices),
    planCommand(parts.choices),
    undoCommand(parts.undo),
    redoCommand(parts.undo),
    rewindCommand(parts.undo),
  ];
}
