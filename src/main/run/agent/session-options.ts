/** What a job asks of its session and turns, in the words of `_meta["dsh-acp"]`: only what the agent says it understands. */
import { methods } from '@agentclientprotocol/sdk';
import type { PolicyRules } from '../../../shared/policy-rules.ts';
import type { Budget } from '../../../shared/session-options.ts';
import type { PermissionMode } from '../../../shared/events.ts';
import type { Attempt } from '../job.ts';
import { markVariable } from '../job-environment.ts';
import type { AgentConnection } from './agent-connection.ts';
import { AgentFault } from './agent-fault.ts';

type Said = Record<string, unknown>;

export interface SessionWishes {
  readonly mode: PermissionMode | undefined;
  /** Of the run; must hold as well as the job's own. */
  readonly policy: PolicyRules | undefined;
}

/** `undefined` when there is nothing to say. @throws AgentFault of class `request` for two policies, of which the agent takes one */
export function newSessionMeta(
  connection: AgentConnection,
  attempt: Attempt,
  { mode, policy: runPolicy }: SessionWishes,
): Said | undefined {
  const { budget, env } = attempt.job;
  const policy = attempt.job.policy ?? runPolicy;
  if (attempt.job.policy !== undefined && runPolicy !== undefined && connection.understands(methods.agent.session.new, 'policy')) {
    const message = 'the job has a policy, and so has the run; the agent takes one: give --policy-file to the agent itself';
    throw new AgentFault('request', message, { retryable: false });
  }
  return understood(connection, methods.agent.session.new, {
    budget: budget === undefined ? undefined : onWire(budget),
    policy,
    mode,
    sampling: attempt.modelSeed === undefined ? undefined : { seed: attempt.modelSeed },
    env: { ...env, DSH_SEED: String(attempt.seed), [markVariable]: connection.mark },
  });
}

/** @param turn from 0 */
export function promptMeta(connection: AgentConnection, { job, key }: Attempt, turn: number): Said | undefined {
  return understood(connection, methods.agent.session.prompt, {
    key: `${key}:${turn}`,
    priority: job.priority === 0 ? undefined : job.priority,
    traceparent: job.traceparent,
  });
}

/** Whether the agent keeps the budget by itself. */
export function keepsBudget(connection: AgentConnection): boolean {
  return connection.understands(methods.agent.session.new, 'budget');
}

function understood(connection: AgentConnection, method: string, members: Said): Said | undefined {
  const said = Object.entries(members).filter(([name, value]) => value !== undefined && connection.understands(method, name));
  return said.length === 0 ? undefined : Object.fromEntries(said);
}

function onWire({ deadline, ...limits }: Budget): Said {
  return { ...limits, ...(deadline === undefined ? {} : { deadline: new Date(deadline).toISOString() }) };
}
