/**
 * Sends the whole log of a session as its client would have seen it live.
 */
import { toWireError } from '../../shared/errors.ts';
import type { Chosen } from '../../shared/session-choices.ts';
import type { LoadOutcome, SessionTask } from '../../shared/thread-protocol.ts';
import type { ToolPresenter } from '../projection/tool-cards.ts';
import type { SessionJournal } from './session-journal.ts';
import { sessionProjector } from './session-projector.ts';
import { SessionScreen } from './session-screen.ts';
import type { SessionTitles } from './session-titles.ts';
import type { ThreadContext } from './thread-context.ts';

export interface ReplayParts {
  readonly journal: SessionJournal;
  readonly presenterOf: (toolName: string) => ToolPresenter | undefined;
  readonly titles: SessionTitles;
  readonly chosen: () => Chosen;
}

/** Never rejects. */
export async function replayLog(task: SessionTask, { outbox }: ThreadContext, parts: ReplayParts): Promise<LoadOutcome> {
  try {
    const projector = sessionProjector(task, parts.presenterOf, true);
    const screen = new SessionScreen({ sessionId: task.sessionId, projector, outbox });
    await parts.journal.replay((event) => screen.replay(event));
    screen.showTitle(parts.titles.unlogged);
    return { ok: true, chosen: parts.chosen() };
  } catch (error) {
    return { ok: false, error: toWireError(error) };
  }
}
