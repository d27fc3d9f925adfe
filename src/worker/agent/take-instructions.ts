/**
 * Lets the model know the instruction files of the workspace: once in the system text, and what has changed since, or come
 * with a directory that was entered, in the conversation.
 */
import type { AgentContext } from './agent-context.ts';
import { loggedInstructions } from './request-envelope.ts';
import type { TurnScope } from './turn-scope.ts';

/**
 * To be awaited before each step. Looks for at most two seconds, and within a turn only where something new was read; without
 * effect where the session reads no such files.
 *
 * @throws ServerError LOG_WRITE_FAILED
 */
export async function takeInstructions(context: AgentContext, scope: TurnScope): Promise<void> {
  const { instructions } = context;
  const { files: seen } = context.toolParts;
  if (instructions === undefined || scope.ended || (scope.step > 0 && !instructions.hasNewPlaces(seen))) return;
  const news = await instructions.news(loggedInstructions(context), seen, scope.signal);
  if (news === undefined || scope.ended) return;
  const { turn } = scope;
  const { given, files } = news;
  if (given === 'notice') {
    const content = [{ type: 'text' as const, text: news.text }];
    scope.record({ type: 'user/message', data: { turn, messageId: context.newId(), source: 'notice', content } });
  }
  scope.record({ type: 'instructions/read', data: { turn, given, files } });
}
