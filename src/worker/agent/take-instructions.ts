/**
 * Lets the model know the instruction files of the workspace, at the begin of a turn: once in the system text, and what has
 * changed since in the conversation.
 */
import type { AgentContext } from './agent-context.ts';
import { loggedInstructions } from './request-envelope.ts';
import type { TurnScope } from './turn-scope.ts';

/** Looks for at most two seconds; without effect where the session reads no such files. @throws ServerError LOG_WRITE_FAILED */
export async function takeInstructions(context: AgentContext, scope: TurnScope): Promise<void> {
  const { instructions } = context;
  if (instructions === undefined) return;
  const news = await instructions.news(loggedInstructions(context), scope.signal);
  if (news === undefined || scope.ended) return;
  const { turn } = scope;
  const { given, files } = news;
  if (given === 'notice') {
    const content = [{ type: 'text' as const, text: news.text }];
    scope.record({ type: 'user/message', data: { turn, messageId: context.newId(), source: 'notice', content } });
  }
  scope.record({ type: 'instructions/read', data: { turn, given, files } });
}
