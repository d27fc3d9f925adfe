/** The way to the person behind a session, where its client shows forms. */
import { sessionSecrets } from '../../shared/known-secrets.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { PersonQuestions } from '../tools/ask-user-channel.ts';
import type { ThreadContext } from './thread-context.ts';

/** Whether a session has the tool that asks: a program is not a person, and a session that works for another has nobody to ask. */
export function asksPerson({ audience, client, settings }: SessionTask): boolean {
  return audience === undefined && settings.profile === 'editor' && client.elicitationForm === true;
}

export function personOf(task: SessionTask, { main, outbox }: ThreadContext): PersonQuestions | undefined {
  if (!asksPerson(task)) return undefined;
  const { sessionId, settings } = task;
  return new PersonQuestions({
    sessionId,
    timeoutMs: settings.permissionTimeoutMs,
    ask: (request) => main.askClient(sessionSecrets(task).without(request)),
    withdraw: (requestKey) => main.withdrawClientRequest(sessionId, requestKey),
    flush: () => outbox.flush(),
  });
}
