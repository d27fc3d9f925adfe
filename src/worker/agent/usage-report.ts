/**
 * What a session has used, for whoever asks between its turns.
 */
import type { TurnUsage } from '../../shared/events.ts';
import type { AgentContext } from './agent-context.ts';
import { requestEnvelope } from './request-envelope.ts';
import type { SessionSums } from './session-ledger.ts';

export interface UsageReport {
  /** Of all turns; the running one included. */
  readonly session: SessionSums;
  /** Of the last turn that ended; absent before the first has. */
  readonly lastTurn?: TurnUsage;
  /** Whether anybody said what tokens cost. */
  readonly priced: boolean;
  /** Estimated tokens of the next request before its prompt, and the most that the model takes. */
  readonly context: { readonly tokens: number; readonly window: number };
}

export function usageReport(context: AgentContext): UsageReport {
  const { ledger, history, model } = context;
  const { lastTurn } = ledger;
  return {
    session: ledger.sums(),
    ...(lastTurn === undefined ? {} : { lastTurn }),
    priced: ledger.isPriced,
    context: { tokens: history.estimateTokens(requestEnvelope(context).chars), window: model.contextWindow },
  };
}
