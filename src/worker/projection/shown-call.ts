/**
 * What a call's card shows, made by its tool's presenter, or plainly where that is missing or throws.
 */
import type { JsonValue } from '../../shared/errors.ts';
import type { ToolCallView } from '../../shared/render-intents.ts';
import { type CallCard, type CallCardContext, callCard, fallbackCallCard } from './call-card.ts';
import type { ToolPresenter } from './tool-cards.ts';

export interface ShownCall {
  readonly members: CallCard;
  readonly card: ToolCallView['card'];
  /** Missing when the call is shown plainly: its result is then, too. */
  readonly presenter: ToolPresenter | undefined;
}

export function shownCall(presenter: ToolPresenter | undefined, args: JsonValue, context: CallCardContext): ShownCall {
  if (presenter !== undefined) {
    try {
      const view = presenter.presentCall(args, { cwd: context.cwd });
      return { members: callCard(view, context), card: view.card, presenter };
    } catch {
      // Broken or refused arguments: shown plainly below.
    }
  }
  return { members: fallbackCallCard(context), card: 'generic', presenter: undefined };
}

export function cardOrFallback(view: ToolCallView, context: CallCardContext): CallCard {
  try {
    return callCard(view, context);
  } catch {
    // Not a view; the arguments are shown instead.
    return fallbackCallCard(context);
  }
}

/** The arguments as a value; their text where they are no JSON, since a model's broken JSON is shown as it came. */
export function parsedArguments(text: string): JsonValue {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
