/**
 * What a client sees before there is anything to log: a call while the model still writes it, and the output of a command
 * while it runs. Nothing of this is kept; the events that follow say all of it again, whole.
 */

/** A call has been named, or more of its arguments' JSON text is there. `callId` is the one that it is logged under. */
export type CallDraft =
  | { readonly kind: 'named'; readonly callId: string; readonly name: string }
  | { readonly kind: 'arguments'; readonly callId: string; readonly text: string };

export interface LiveView {
  /** Runs once per piece of the arguments, so it must be cheap. Whoever shows it decides how often. */
  draft(draft: CallDraft): void;
  /** Least time between two pieces of one command's output, and before the first, in milliseconds. */
  readonly outputPaceMs: number;
  /** Adds to what the card of a running call shows. */
  output(callId: string, text: string): void;
}
