/**
 * Runs what a person types as `/name rest`: a command that is answered here, or the prompt that a file makes of it. One at a time,
 * in the place of a turn.
 */
import { ServerError, toWireError } from '../../shared/errors.ts';
import type { PromptBlock } from '../../shared/events.ts';
import type { PromptOptions } from '../../shared/session-options.ts';
import type { TurnOutcome } from '../../shared/thread-protocol.ts';
import type { Journal } from '../agent/journal.ts';
import { noTurnUsage } from '../agent/turn-usage.ts';
import { sliceWhole } from '../display/title-line.ts';
import { expandCommand } from './expand-command.ts';
import type { FileCommands } from './file-commands.ts';
import type { CommandResult, SessionCommand } from './session-command.ts';
import { type TypedCommand, typedCommand } from './typed-command.ts';

export interface CommandRunnerParts {
  readonly commands: readonly SessionCommand[];
  readonly files: Pick<FileCommands, 'find'>;
  readonly journal: Pick<Journal, 'append' | 'barrier'>;
  readonly newId: () => string;
  /** Something that no command may throw. */
  readonly onFault: (error: unknown) => void;
}

/** What comes of a command. Exactly one of them is called, once. */
export interface CommandSequel {
  readonly answer: (outcome: TurnOutcome) => void;
  /** The model is to be asked; `shown` is what was typed, where that is something else. */
  readonly send: (content: readonly PromptBlock[], shown?: readonly PromptBlock[]) => void;
}

type IdentifiedCommand = TypedCommand & { readonly messageId: string };

type CommandEnd =
  | { readonly kind: 'answered'; readonly outcome: TurnOutcome }
  | { readonly kind: 'prompt'; readonly content: readonly PromptBlock[]; readonly shown?: readonly PromptBlock[] };

/** Of a text that a model did not write, a person can only read so much. */
const longestAnswer = 256 * 1024;

export class CommandRunner {
  readonly #parts: CommandRunnerParts;
  readonly #byName: ReadonlyMap<string, SessionCommand>;
  #running: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
  #disposed = false;

  constructor(parts: CommandRunnerParts) {
    this.#parts = parts;
    this.#byName = new Map(parts.commands.map((command) => [command.name, command]));
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /**
   * Runs a prompt that is a command, and calls one of `then` when it has ended; says whether it is one. One with a key is none:
   * only turns keep the promise that they are not run twice.
   */
  take(content: readonly PromptBlock[], { key, messageId }: PromptOptions, then: CommandSequel): boolean {
    const typed = key === undefined ? typedCommand(content) : undefined;
    if (typed === undefined || this.#disposed) return false;
    const abort = new AbortController();
    const ended = this.#run({ ...typed, messageId: messageId ?? this.#parts.newId() }, abort.signal).then((end) => {
      this.#running = undefined;
      if (end.kind === 'answered') then.answer(end.outcome);
      else then.send(end.content, end.shown);
    });
    this.#running = { abort, ended };
    return true;
  }

  /** The running command answers `cancelled`, unless it is done. */
  cancel(): void {
    this.#running?.abort.abort();
  }

  /** Takes no more; fulfils when the running one has ended. */
  async dispose(): Promise<void> {
    this.#disposed = true;
    this.cancel();
    await this.#running?.ended;
  }

  /** Fulfils when the command has ended and its end is in the log, or with what the model is to read. Never rejects. */
  async #run(typed: IdentifiedCommand, signal: AbortSignal): Promise<CommandEnd> {
    try {
      const command = this.#byName.get(typed.name);
      return command === undefined ? await this.#fromFile(typed, signal) : await this.#builtIn(command, typed, signal);
    } catch (error) {
      return { kind: 'answered', outcome: { ok: false, error: toWireError(error) } };
    }
  }

  async #fromFile(typed: TypedCommand, signal: AbortSignal): Promise<CommandEnd> {
    const file = await this.#parts.files.find(typed.name, signal);
    if (signal.aborted) return cancelled;
    // A word with a slash that is no command is a word.
    if (file === undefined) return { kind: 'prompt', content: typed.content };
    return promptInPlace(typed, [{ type: 'text', text: expandCommand(file.body, typed.args) }]);
  }

  async #builtIn(command: SessionCommand, typed: IdentifiedCommand, signal: AbortSignal): Promise<CommandEnd> {
    const result = await this.#resultOf(command, typed.args, signal);
    // What the model has not been told yet need not be told.
    if (result.kind === 'prompt') return signal.aborted ? cancelled : promptInPlace(typed, result.content);
    const { newId, journal } = this.#parts;
    const { messageId } = typed;
    const { text, isError = false, wasCancelled = false, usage = noTurnUsage } = result;
    const { name, content } = typed;
    const output = { messageId: newId(), text: clipped(text) };
    journal.append({ type: 'command/run', data: { messageId, name, content, output, isError } });
    await journal.barrier();
    return { kind: 'answered', outcome: { ok: true, stopReason: wasCancelled ? 'cancelled' : 'end_turn', usage } };
  }

  async #resultOf(command: SessionCommand, args: string, signal: AbortSignal): Promise<Result> {
    try {
      return await command.run(args, signal);
    } catch (error) {
      // A command that was done before it heard of the cancel keeps its answer, as a turn does.
      if (signal.aborted) return { kind: 'text', text: '', isError: true, wasCancelled: true };
      if (!(error instanceof ServerError)) this.#parts.onFault(error);
      const text = error instanceof ServerError ? error.message : `\`/${command.name}\` met an unexpected fault.`;
      return { kind: 'text', text, isError: true };
    }
  }
}

type Result = CommandResult & { readonly isError?: boolean; readonly wasCancelled?: boolean };

/** What a command made of its words stands in their place. */
function promptInPlace({ content, before, attached }: TypedCommand, made: readonly PromptBlock[]): CommandEnd {
  return { kind: 'prompt', content: [...before, ...made, ...attached], shown: content };
}

function clipped(text: string): string {
  return text.length <= longestAnswer ? text : `${sliceWhole(text, longestAnswer)}\n… (cut here)`;
}

const cancelled: CommandEnd = { kind: 'answered', outcome: { ok: true, stopReason: 'cancelled', usage: noTurnUsage } };
