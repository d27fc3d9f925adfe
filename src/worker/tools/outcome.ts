/**
 * The two shapes of a tool's end, and how a failed one is shown.
 */
import type { JsonObject } from '../../shared/errors.ts';
import type { ToolResultView } from '../../shared/render-intents.ts';
import { fencedText } from '../display/fenced-text.ts';
import type { ToolOutcome } from './tool.ts';

export function succeeded(text: string, meta?: JsonObject): ToolOutcome {
  return meta === undefined ? { text, isError: false } : { text, isError: false, meta };
}

/** A text with what else there is to say of it behind it. */
export function withNote(text: string, note: string | undefined): string {
  return note === undefined ? text : `${text}\n${note}`;
}

/** `code` is a stable word for programs; `text` tells the model what was expected, what came and what to do. */
export function failed(code: string, text: string): ToolOutcome {
  return { text, isError: true, code };
}

/** The outcome of a call whose signal aborted. */
export function aborted(): ToolOutcome {
  return failed('ABORTED', 'The call was cancelled before it ended.');
}

/** A failure's card: its text, nothing else. */
export function failureView(outcome: ToolOutcome): ToolResultView {
  return { card: 'generic', content: [outcome.text] };
}

/** The card of a call whose result is text: found lines or names, fenced; a failure as it is. */
export function textView(outcome: ToolOutcome): ToolResultView {
  return outcome.isError ? failureView(outcome) : { card: 'generic', content: [fencedText(outcome.text)] };
}
