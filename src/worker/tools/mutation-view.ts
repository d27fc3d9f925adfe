/**
 * How a change of a file is shown: as a diff before it runs and after, as its error when it failed.
 *
 * Used by `write` and `edit`. Diffs carry the path as the call named it, made absolute, so that an editor opens that one.
 */
import { resolve } from 'node:path';
import type { FileDiff, PresentContext, ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import { boundedDiffs, diffsFromMeta } from './diff-hunks.ts';
import { displayPath } from '../display/display-path.ts';
import { failureView } from './outcome.ts';
import { titleLine } from '../display/title-line.ts';
import type { ToolOutcome } from './tool.ts';

/** The change that a call intends. Too large for a card, it is told in words. */
export function intendedChange(verb: string, filePath: string, change: Omit<FileDiff, 'path'>, context: PresentContext): ToolCallView {
  const path = resolve(context.cwd, filePath);
  const title = titleLine(`${verb} ${displayPath(filePath, context.cwd)}`);
  const { shown, omitted } = boundedDiffs([{ path, ...change }]);
  if (omitted === 0) {
    return { card: 'diff', title, diffs: shown, locations: [{ path }] };
  }
  const size = Buffer.byteLength(change.newText);
  return { card: 'generic', title, kind: 'edit', content: [`${size} bytes of new text, too large to show.`], locations: [{ path }] };
}

/** The change that was made, from the result's meta. */
export function appliedChange(outcome: ToolOutcome): ToolResultView {
  if (outcome.isError) {
    return failureView(outcome);
  }
  // A change too large for a card has none: then the card keeps what the call said that it would do.
  return { card: 'diff', diffs: diffsFromMeta(outcome.meta) };
}
