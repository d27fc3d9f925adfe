/**
 * The agent of one session with everything it reaches the world through.
 */
import { randomUUID } from 'node:crypto';
import { workspaceRoots } from '../../shared/workspace-roots.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { abortableSleep } from '../agent/abortable-sleep.ts';
import { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import type { SessionTools } from '../agent/session-tools.ts';
import { createModel } from '../model/create-model.ts';
import { nextDelay } from '../model/retry-policy.ts';
import { slotsFor } from '../model-slots/session-slots.ts';
import type { SessionPermissions } from '../permission/session-permissions.ts';
import type { SubagentRuns } from '../subagents/subagent-runs.ts';
import { FileObservations } from '../tools/file-observations.ts';
import type { SessionJournal } from './session-journal.ts';
import type { ThreadContext } from './thread-context.ts';

/** Attempts of a model call that has no configured number: the built-in models fail only when a script says so. */
const builtInAttempts = 3;
const builtInRetryAfterMs = 60_000;

export interface SessionAgentParts {
  readonly tools: SessionTools;
  readonly journal: SessionJournal;
  readonly permissions: SessionPermissions;
  readonly subagents: SubagentRuns;
}

export function createSessionAgent(task: SessionTask, thread: ThreadContext, parts: SessionAgentParts): ReactLoopAgent {
  const { sessionId, cwd, settings, options, spillDir } = task;
  const { broker, main, outbox } = thread;
  const { tools, journal, permissions, subagents } = parts;
  const remote = settings.model.kind === 'openai-compatible' ? settings.model : undefined;
  const maxAttempts = remote === undefined ? builtInAttempts : remote.maxRetries + 1;
  const maxRetryAfterMs = remote?.maxRetryAfterMs ?? builtInRetryAfterMs;
  return new ReactLoopAgent({
    sessionId,
    cwd,
    settings,
    options,
    tools,
    model: createModel(settings.model, options.sampling),
    journal,
    permissions,
    toolParts: { broker, files: new FileObservations(), roots: workspaceRoots(task), spillDir, subagents },
    maxAttempts,
    nextDelay: (attempt, failure, random) => (attempt < maxAttempts ? nextDelay(attempt, failure, random, maxRetryAfterMs) : undefined),
    whenWritable: (signal) => outbox.whenWritable(signal),
    newId: randomUUID,
    now: () => performance.now(),
    wallClock: () => Date.now(),
    modelSlots: slotsFor(settings.model, {
      sessionId,
      main,
      release: (leaseId, report) => outbox.release({ leaseId, report }),
    }),
    random: Math.random,
    sleep: abortableSleep,
  });
}
