/**
 * The agent of one session with everything it reaches the world through.
 */
import { randomUUID } from 'node:crypto';
import { workspaceRoots } from '../../shared/workspace-roots.ts';
import type { SessionTask } from '../../shared/thread-protocol.ts';
import { abortableSleep } from '../agent/abortable-sleep.ts';
import type { LiveView } from '../agent/live-view.ts';
import { ReactLoopAgent } from '../agent/react-loop-agent.ts';
import type { SessionTools } from '../agent/session-tools.ts';
import type { SessionMemory } from '../memory/session-memory.ts';
import type { ModelAdapter } from '../model/model-adapter.ts';
import { nextDelay } from '../model/retry-policy.ts';
import { slotsFor } from '../model-slots/session-slots.ts';
import type { SlotAhead } from '../model-slots/slot-ahead.ts';
import type { SessionPermissions } from '../permission/session-permissions.ts';
import type { SubagentRuns } from '../subagents/subagent-runs.ts';
import type { SessionChoosing } from './session-choosing.ts';
import type { SessionJournal } from './session-journal.ts';
import { personOf } from './session-person.ts';
import type { SessionUndo } from './session-undo.ts';
import { createEditorFiles, createSessionInstructions } from './session-workspace.ts';
import type { ThreadContext } from './thread-context.ts';

/** Attempts of a model call that has no configured number: the built-in models fail only when a script says so. */
const builtInAttempts = 3;
const builtInRetryAfterMs = 60_000;

export interface SessionAgentParts {
  readonly tools: SessionTools;
  readonly journal: SessionJournal;
  readonly permissions: SessionPermissions;
  readonly subagents: SubagentRuns;
  readonly live: LiveView | undefined;
  readonly model: ModelAdapter;
  readonly choosing: SessionChoosing;
  readonly undo: SessionUndo;
  readonly memory: SessionMemory;
  readonly slotAhead: SlotAhead;
}

export function createSessionAgent(task: SessionTask, thread: ThreadContext, parts: SessionAgentParts): ReactLoopAgent {
  const { sessionId, cwd, settings, options, spillDir } = task;
  const { broker, main, outbox } = thread;
  const { tools, journal, permissions, subagents, model, choosing } = parts;
  const remote = settings.model.kind === 'openai-compatible' ? settings.model : undefined;
  const maxAttempts = remote === undefined ? builtInAttempts : remote.maxRetries + 1;
  const maxRetryAfterMs = remote?.maxRetryAfterMs ?? builtInRetryAfterMs;
  const instructions = createSessionInstructions(task, thread);
  const person = personOf(task, thread);
  const editor = createEditorFiles(task, thread, subagents);
  return new ReactLoopAgent({
    sessionId,
    cwd,
    settings,
    options,
    tools,
    model,
    stepNotice: () => choosing.nextNotice(),
    journal,
    memory: parts.memory,
    permissions,
    ...parts.undo.keepers,
    ...(instructions === undefined ? {} : { instructions }),
    toolParts: {
      broker,
      files: parts.undo.files,
      roots: workspaceRoots(task),
      ...(editor === undefined ? {} : { editor }),
      spillDir,
      subagents,
      ...(choosing.plan === undefined ? {} : { plan: choosing.plan }),
      ...(person === undefined ? {} : { person }),
    },
    maxAttempts,
    nextDelay: (attempt, failure, random) => (attempt < maxAttempts ? nextDelay(attempt, failure, random, maxRetryAfterMs) : undefined),
    ...(parts.live === undefined ? {} : { live: parts.live }),
    ...(task.lostCallIds === undefined ? {} : { lostCallIds: task.lostCallIds }),
    whenWritable: (signal) => outbox.whenWritable(signal),
    newId: randomUUID,
    now: () => performance.now(),
    wallClock: () => Date.now(),
    modelSlots: slotsFor(settings.model, {
      sessionId,
      main,
      ahead: parts.slotAhead,
      release: (leaseId, report) => outbox.release({ leaseId, report }),
    }),
    random: Math.random,
    sleep: abortableSleep,
  });
}
