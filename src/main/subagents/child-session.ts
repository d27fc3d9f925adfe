/**
 * Makes a session that works for another one of this server: a log and an id of its own, the rights of the one that
 * delegated, and a place on that one's thread. No client ever sees it.
 */
import { v7 as uuidv7 } from 'uuid';
import type { ServerConfig } from '../../shared/config.ts';
import { logVersion, type PermissionMode, type SessionHeader } from '../../shared/events.ts';
import { createSessionFile } from '../../shared/log/session-paths.ts';
import type { SessionChoices } from '../../shared/session-choices.ts';
import type { Budget, SessionOptions, StoredSessionOptions } from '../../shared/session-options.ts';
import type { SubagentProvider, SubagentRequest } from '../../shared/subagent-protocol.ts';
import { Admission } from '../sessions/admission.ts';
import { Session } from '../sessions/session.ts';
import type { SessionParts } from '../sessions/session-parts.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { SessionWorkspace } from '../threads/session-task.ts';

/** The slot of the turn that delegates is the child's, too: waiting for another one could wait for ever. */
const admitsAll = new Admission(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);

export interface ChildPlan {
  readonly request: SubagentRequest;
  readonly provider: SubagentProvider;
  /** Canonical. */
  readonly cwd: string;
  readonly parent: Session;
  readonly beside: AttachedSession;
}

/** Writes the log's header; touches no thread. @throws ServerError LOG_WRITE_FAILED */
export function createChildSession(plan: ChildPlan, parts: Omit<SessionParts, 'admission' | 'makeRoom'>): Session {
  const { config } = parts;
  const stored = storedOptions(plan);
  const header = headerFor(plan.cwd, stored, config);
  const paths = createSessionFile(config.stateDir, header);
  const { access, options: parentOptions } = plan.parent.identity;
  const { env } = parentOptions;
  const options: SessionOptions = { ...stored, ...(env === undefined ? {} : { env }) };
  return new Session(
    {
      id: header.id,
      cwd: plan.cwd,
      paths,
      client: { terminalOutput: false },
      profile: 'automation',
      options,
      ...(access === undefined ? {} : { access }),
      choices: inheritedChoices(plan.parent),
      workspace: sharedWorkspace(plan.parent),
      heedsRefusals: plan.parent.identity.profile === 'editor' || plan.parent.identity.heedsRefusals === true,
      beside: plan.beside,
    },
    { ...parts, admission: admitsAll, makeRoom: () => undefined },
  );
}

/** The model that the person chose works for them here, too; nobody is shown what it thinks. */
function inheritedChoices({ chosen }: Session): SessionChoices {
  const { showThoughts: _, ...choices } = chosen.choices;
  return choices;
}

/** The directories of the workspace, and nothing that holds a secret or a connection. */
function sharedWorkspace({ identity }: Session): SessionWorkspace {
  const { additionalDirectories } = identity.workspace ?? {};
  return additionalDirectories === undefined ? {} : { additionalDirectories };
}

function headerFor(cwd: string, options: StoredSessionOptions, { agentName, agentVersion }: ServerConfig): SessionHeader {
  return {
    type: 'session',
    version: logVersion,
    id: uuidv7(),
    createdAt: new Date().toISOString(),
    cwd,
    agent: { name: agentName, version: agentVersion },
    options,
  };
}

/** What the delegating session may not do, its child may not do either. */
function storedOptions({ request, provider, parent }: ChildPlan): StoredSessionOptions {
  const { policy, sampling, tools } = parent.identity.options;
  const budget = budgetOf(request);
  const ownTools = provider.tools === undefined ? tools : provider.tools.filter((name) => tools === undefined || tools.includes(name));
  return {
    depth: request.depth,
    maxDepth: Math.min(provider.maxDepth, parent.identity.options.maxDepth ?? provider.maxDepth),
    // Whatever changed meanwhile, between what its thread saw and what stands here.
    mode: stricterMode(request.mode ?? parent.mode, parent.mode),
    ...(budget === undefined ? {} : { budget }),
    ...(policy === undefined ? {} : { policy }),
    ...(sampling === undefined ? {} : { sampling }),
    ...(provider.persona === undefined ? {} : { persona: provider.persona }),
    ...(ownTools === undefined ? {} : { tools: ownTools }),
    ...(provider.outputSchema === undefined ? {} : { outputSchema: provider.outputSchema }),
  };
}

function budgetOf({ deadline, maxTokens, maxCostUsd, maxSteps, maxToolCalls }: SubagentRequest): Budget | undefined {
  const limits = Object.entries({ deadline, maxTokens, maxCostUsd, maxSteps, maxToolCalls }).filter(([, max]) => max !== undefined);
  return limits.length === 0 ? undefined : Object.fromEntries(limits);
}

const byRights: readonly PermissionMode[] = ['read-only', 'plan', 'ask', 'accept-edits', 'full-access'];

function stricterMode(a: PermissionMode, b: PermissionMode): PermissionMode {
  return byRights.indexOf(a) < byRights.indexOf(b) ? a : b;
}
