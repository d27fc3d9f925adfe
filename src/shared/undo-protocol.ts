/**
 * What main and a session thread say to each other of undoing: a point to go back to, and what became of the files.
 */
import type { RewindKind } from './undo-events.ts';

export interface RewindRequest {
  /** Of a message of the prompt that is to be undone, with all that came after it: the prompt's own, or one of its answer. */
  readonly messageId: string;
  /** Whether files are restored, too. */
  readonly files: boolean;
  /** Overwrites also what has changed since, and what the session would have to ask about. */
  readonly force: boolean;
}

export interface RewoundFile {
  /** Canonical. */
  readonly path: string;
  readonly outcome: 'restored' | 'removed' | 'left';
  /** Why it was left, as the end of a sentence about the file. */
  readonly why?: string;
  /** Left for a reason that `force` does away with. */
  readonly canForce?: boolean;
}

/** `afterBatch`: the batch with the update that says so; main answers behind it. */
export interface RewindMade {
  readonly outcome: RewindOutcome;
  readonly afterBatch: number;
}

export interface RewindOutcome {
  readonly kind: RewindKind;
  /** Turns that left the conversation, or that came back to it, ascending. */
  readonly turns: readonly number[];
  readonly files: readonly RewoundFile[];
  /** What ran in those turns and may have changed something that no undo knows of: commands and the like, in words. */
  readonly notUndone: readonly string[];
}
