/** The projection of one session: for what happens now, or for a log that is shown again. */
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { Projector } from '../projection/projector.ts';
import type { ToolPresenter } from '../projection/tool-cards.ts';

export function sessionProjector(task: SessionTask, tools: (name: string) => ToolPresenter | undefined, replay: boolean): Projector {
  const { sessionId, cwd, client, settings } = task;
  return new Projector({ sessionId, cwd, client, profile: settings.profile, settings, tools, replay });
}
