/**
 * A slash command: what a person types as `/name rest` in place of a prompt. One file per command; each is made with the
 * parts of the session it needs, so that the table of commands is the only thing that knows them all.
 */
import type { PromptBlock, TurnUsage } from '../../shared/events.ts';

export type CommandResult =
  /** Answered here: Markdown, shown to the person and never to the model. `usage` is that of a turn which the command took. */
  | { readonly kind: 'text'; readonly text: string; readonly usage?: TurnUsage }
  /** Goes to the model in place of what was typed. */
  | { readonly kind: 'prompt'; readonly content: readonly PromptBlock[] };

export interface SessionCommand {
  /** Without the slash. */
  readonly name: string;
  readonly description: string;
  /** What may stand behind the name; absent where nothing may. */
  readonly hint?: string;
  /**
   * Runs while no turn does. `args` is the trimmed text behind the name. Ends soon after `signal` aborts.
   *
   * @throws ServerError whose message is shown to the person
   */
  run(args: string, signal: AbortSignal): Promise<CommandResult>;
}
