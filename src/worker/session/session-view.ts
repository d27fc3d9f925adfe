/**
 * Who sees what a session does: the client, or the session of this server that it works for.
 */
import { sessionSecrets } from '../../shared/known-secrets.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import type { Projector } from '../projection/projector.ts';
import type { ToolPresenter } from '../projection/tool-cards.ts';
import { ParentScreen } from './parent-screen.ts';
import type { SessionView } from './session-journal.ts';
import { SessionScreen } from './session-screen.ts';
import type { ThreadContext } from './thread-context.ts';

export function createSessionView(
  task: SessionTask,
  thread: ThreadContext,
  { projector, tools }: { readonly projector: Projector; readonly tools: (toolName: string) => ToolPresenter | undefined },
): SessionView {
  const { sessionId, cwd, settings, audience } = task;
  const { prices, maxUpdatesPerSecond } = settings;
  const secrets = sessionSecrets(task);
  if (audience === undefined) return new SessionScreen({ sessionId, projector, outbox: thread.outbox, maxUpdatesPerSecond, secrets });
  return new ParentScreen({ cwd, tools, prices, report: (activities) => thread.main.reportSubagentActivity(sessionId, activities) });
}
