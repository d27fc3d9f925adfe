/**
 * What a log says of files that were changed, and of going back: the payloads of `file/snapshot`, `undo/start` and
 * `history/rewound`.
 */

/** What was at a path. */
export interface FileState {
  /** SHA-256 of the content, in hexadecimal; absent when the content was too large to look at. */
  readonly hash?: string;
  readonly bytes: number;
  /** Permission bits, where they are known. */
  readonly mode?: number;
}

/** A tool, or an undo, changes this file next, as soon as this line is on the disk. `null` stands for no file. */
export interface FileSnapshotData {
  /** The turn, or the last one before an undo. */
  readonly turn: number;
  /** Absent for an undo. */
  readonly callId?: string;
  /** `seq` of the `undo/start` that changes the file. */
  readonly undo?: number;
  /** Canonical. */
  readonly path: string;
  readonly before: FileState | null;
  readonly after: FileState | null;
  /** What is made for the file, outermost first. */
  readonly directories?: readonly string[];
  /** A command, or another program, has made the change: it was found afterwards. */
  readonly observed?: true;
  /** Why the content of `before` is not kept: this change cannot be undone. */
  readonly notKept?: 'file-too-large' | 'session-full' | 'disk';
}

/** The workspace was compared with what it was before a call. */
export interface WorkspaceObservedData {
  readonly turn: number;
  readonly callId: string;
  /** How many `file/snapshot` say what it changed. */
  readonly changed: number;
  /** Why they are not all, or none is known. */
  readonly why?: string;
}

/** `redo` takes an undo, or a rewind, back. */
export type RewindKind = 'undo' | 'redo' | 'rewind';

/** An undo begins. One without its `history/rewound` was cut off, and may have restored some of its files. */
export interface UndoStartData {
  readonly kind: RewindKind;
  readonly base: number;
  readonly files: boolean;
  readonly force: boolean;
}

/** The conversation is again what it was right before event `base`. Spent budgets stay spent, and keys stay known. */
export interface HistoryRewoundData {
  readonly kind: RewindKind;
  /** `seq` of the first `undo/start` that belongs to it: going back there takes the rewind back. */
  readonly undo: number;
  readonly base: number;
  /** Turns that left the conversation, or that came back to it, ascending. */
  readonly turns: readonly number[];
  readonly restored: number;
  readonly removed: number;
  /** Files that were left as they are, and why; the first of them. */
  readonly left?: readonly { readonly path: string; readonly why: string }[];
  /** Markdown for the client; absent where the answer of a command says it. */
  readonly note?: string;
}
