/** The projection of one session: for what happens now, or for a log that is shown again. */
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { Projector } from '../projection/projector.ts';
import type { ToolPresenter } from '../projection/tool-cards.ts';
import { everyExtra, toolRegistryFor } from '../tools/all-tools.ts';

export function sessionProjector(task: SessionTask, tools: (name: string) => ToolPresenter | undefined, replay: boolean): Projector {
  const { sessionId, cwd, client, settings } = task;
  // A log may hold calls of a tool that the client of its time had, and this one has not.
  const presenterOf = (name: string): ToolPresenter | undefined => tools(name) ?? toolRegistryFor([], everyExtra).get(name);
  return new Projector({ sessionId, cwd, client, profile: settings.profile, settings, tools: presenterOf, replay });
}
