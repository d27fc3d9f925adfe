/**
 * How much of the model's window the next request would fill, and what the session has cost so far.
 */
import type { ContextUse } from '../../shared/events.ts';
import type { AgentContext } from './agent-context.ts';
import { requestEnvelope } from './request-envelope.ts';

export interface ContextUseChange {
  /** Tokens that the history is about to gain or, below zero, to lose. */
  readonly tokens?: number;
  /** US dollars of the session, where its running turn is not counted any more. */
  readonly costUsd?: number;
}

/**
 * Estimated tokens, corrected by what the provider last reported. A request larger than the window is said to fill it: more
 * than all of it nothing can.
 */
export function contextUse(context: AgentContext, { tokens = 0, costUsd }: ContextUseChange = {}): ContextUse {
  const size = context.model.contextWindow;
  const used = context.history.estimateTokens(requestEnvelope(context).chars) + tokens;
  const cost = sessionCost(context, costUsd);
  return { used: Math.min(size, Math.max(0, Math.round(used))), size, ...(cost === undefined ? {} : { costUsd: cost }) };
}

/** US dollars of all turns, the running one included; `undefined` when no prices are known, as a part of it would mislead. */
export function sessionCost({ ledger }: Pick<AgentContext, 'ledger'>, known?: number): number | undefined {
  return ledger.isPriced ? (known ?? ledger.sums().costUsd) : undefined;
}
