/**
 * The permission gate of one session: its modes, grants and policies, and the way to whoever is asked.
 */
import { sessionSecrets } from '../../shared/known-secrets.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { workspaceRoots } from '../../shared/workspace-roots.ts';
import { SessionPermissions } from '../permission/session-permissions.ts';
import { sessionPolicies } from '../permission/session-policies.ts';
import { WorkspaceGrants } from '../permission/workspace-grants.ts';
import type { Projector } from '../projection/projector.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

export interface SessionPermissionsParts {
  readonly journal: SessionJournal;
  readonly projector: Projector;
}

export function createSessionPermissions(task: SessionTask, thread: ThreadContext, parts: SessionPermissionsParts): SessionPermissions {
  const { sessionId, cwd, settings, options, ownDirectories, grants } = task;
  const { broker, main, outbox } = thread;
  const { journal, projector } = parts;
  const roots = workspaceRoots(task);
  const note = (text: string): void => void main.log('warn', text);
  return new SessionPermissions({
    sessionId,
    cwd,
    roots,
    ownDirectories,
    mode: settings.mode,
    timeoutMs: settings.permissionTimeoutMs,
    journal,
    ask: (request) => main.requestPermission(sessionSecrets(task).without(request)),
    withdraw: (requestKey) => main.withdrawPermission(sessionId, requestKey),
    flush: () => outbox.flush(),
    toolCall: (call, reason) => projector.permissionToolCall(call, reason),
    policies: sessionPolicies({ cwd, roots, ownDirectories, server: settings.policy, session: options.policy }),
    canCutNetwork: () => broker.canCutNetwork(),
    commandState: () => broker.sandboxState(),
    ...(task.sandbox === undefined || task.sandbox.use === 'off' ? {} : { sandboxState: () => broker.sandboxState() }),
    ...(grants === undefined ? {} : { lasting: new WorkspaceGrants({ ...grants, workspace: cwd, note }) }),
    // A program that answers for a person is asked about one call at a time.
    offersGrants: settings.profile !== 'automation',
    unattended: settings.profile === 'automation',
  });
}
