/** Puts a message that waited in the inbox into the conversation. */
import type { AgentContext } from './agent-context.ts';
import type { InboxMessage } from './inbox.ts';
import type { TurnScope } from './turn-scope.ts';

/** @throws ServerError LOG_WRITE_FAILED; the turn has then ended with it */
export function recordMessage(context: AgentContext, scope: TurnScope, { source, content, messageId }: InboxMessage): void {
  scope.record({ type: 'user/message', data: { turn: scope.turn, messageId: messageId ?? context.newId(), source, content } });
}
