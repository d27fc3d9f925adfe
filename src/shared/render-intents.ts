/**
 * Render intents: how a tool wants its call shown, without a word of ACP.
 *
 * A tool owns these (`presentDraft`, `presentCall`, `presentResult`); the projection switches on `card` and never names a tool. They are
 * plain data, made by pure functions of the arguments and the result, so a replayed call looks exactly like the live one.
 */
import type { JsonObject, JsonValue } from './errors.ts';

/** The vocabulary of icons that ACP gives (`ToolKind`). */
export type RenderKind = 'read' | 'edit' | 'delete' | 'move' | 'search' | 'execute' | 'think' | 'fetch' | 'switch_mode' | 'other';

/** `path` is absolute, `line` counts from 1. */
export interface FileLocation {
  readonly path: string;
  readonly line?: number;
}

/** `path` is absolute. `oldText: null` means the file is new. */
export interface FileDiff {
  readonly path: string;
  readonly oldText: string | null;
  readonly newText: string;
}

export type ToolCallView =
  | {
      readonly card: 'generic';
      readonly title: string;
      readonly kind?: RenderKind;
      readonly rawInput?: JsonValue;
      /** Text blocks shown in the card. */
      readonly content?: readonly string[];
      readonly locations?: readonly FileLocation[];
    }
  | { readonly card: 'terminal'; readonly title: string; readonly description?: string; readonly cwd?: string }
  | { readonly card: 'diff'; readonly title: string; readonly diffs: readonly FileDiff[]; readonly locations?: readonly FileLocation[] };

/**
 * `output` is what the command wrote, and nothing else; absent for one that never ran. `notes` are words of ours about it,
 * shown behind it. Exit code and signal are values from the process, never read back out of a text.
 */
export interface TerminalResultView {
  readonly card: 'terminal';
  readonly title?: string;
  readonly output?: string;
  readonly notes?: readonly string[];
  readonly exitCode?: number;
  readonly signal?: string;
}

export type ToolResultView =
  | { readonly card: 'generic'; readonly title?: string; readonly content?: readonly string[] }
  | TerminalResultView
  /** No diffs leave the card with those of the call. */
  | { readonly card: 'diff'; readonly title?: string; readonly diffs: readonly FileDiff[] };

/** Arguments as far as the model has written them. */
export interface ArgumentsDraft {
  /** Those that are complete. */
  readonly members: JsonObject;
  /** The one that is being written, as far as it is there. */
  readonly growing?: { readonly name: string; readonly value: JsonValue };
}

/** How a call is shown while the model still writes its arguments. */
export interface ToolCallDraft {
  readonly title: string;
  readonly kind: RenderKind;
  readonly content?: readonly string[];
  readonly locations?: readonly FileLocation[];
  /** `false` where the card will show the arguments in another way; else they are shown as far as they are there. */
  readonly rawInput?: false;
}

/** What a presenter may know beside the arguments: the session's canonical working directory, for short titles. */
export interface PresentContext {
  readonly cwd: string;
}
