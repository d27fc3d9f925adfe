/**
 * Render intents: how a tool wants its call shown, without a word of ACP.
 *
 * A tool owns these (`presentCall`, `presentResult`); the projection switches on `card` and never names a tool. They are
 * plain data, made by pure functions of the arguments and the result, so a replayed call looks exactly like the live one.
 */
import type { JsonValue } from './errors.ts';

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

export type ToolResultView =
  | { readonly card: 'generic'; readonly title?: string; readonly content?: readonly string[] }
  | { readonly card: 'terminal'; readonly title?: string; readonly output?: string; readonly exitCode?: number; readonly signal?: string }
  | { readonly card: 'diff'; readonly title?: string; readonly diffs: readonly FileDiff[] };

/** What a presenter may know beside the arguments: the session's canonical working directory, for short titles. */
export interface PresentContext {
  readonly cwd: string;
}
