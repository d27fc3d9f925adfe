/**
 * `session/prompt`: what comes in, and what goes out behind the turn's updates. Both have members of our own in
 * `_meta["dsh-acp"]`; an error has the same in its data, where a turn had begun.
 */
import type { PromptRequest, PromptResponse } from '@agentclientprotocol/sdk';
import type { JsonObject } from '../../shared/errors.ts';
import type { Budget } from '../../shared/session-options.ts';
import type { PromptResult } from '../sessions/pending-prompt.ts';
import type { AgentAppParts } from './agent-app.ts';
import { present } from './meta/budget.ts';
import { extensionName } from './meta/extension.ts';
import { promptOptions } from './meta/prompt-options.ts';
import { promptContent, sessionPromptKinds } from './prompt-content.ts';

/** The session is looked up before anything is awaited, so that prompts keep the order in which they came. */
export async function prompt(parts: AgentAppParts, params: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
  const sessions = parts.sessionsIfStarted() ?? (await parts.sessions());
  const session = sessions.get(params.sessionId);
  const content = promptContent(params.prompt, sessionPromptKinds(session));
  const answer = session.prompt(content, promptOptions(params, content, session.settings.prices), signal);
  parts.commands.promptBegins(session);
  return promptResponse(await answer);
}

export function promptResponse({ stopReason, usage, text, structured, spent, left, stored }: PromptResult): PromptResponse {
  const answer = present({
    usage: { ...usage },
    text,
    structured,
    spent,
    left: left === undefined ? undefined : budgetOnWire(left),
    stored,
  });
  return { stopReason, _meta: { [extensionName]: answer } };
}

function budgetOnWire({ deadline, ...limits }: Budget): JsonObject {
  return { ...(deadline === undefined ? {} : { deadline: new Date(deadline).toISOString() }), ...limits };
}
