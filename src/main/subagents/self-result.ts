/** How the turn of a session that works for another one reads as the result of a run. Pure. */
import type { ServerError } from '../../shared/errors.ts';
import type { TurnUsage } from '../../shared/events.ts';
import type { SubagentResult, SubagentUsage } from '../../shared/subagent-protocol.ts';
import type { PromptResult } from '../sessions/pending-prompt.ts';

type TurnResult = Omit<SubagentResult, 'durationMs' | 'logPath'>;

/** `said` is all text that came: for a turn that did not end by itself. */
export function resultOfTurn(turn: PromptResult, said: string): TurnResult {
  const { stopReason, spent, structured } = turn;
  const shared = { usage: usageOf(turn.usage), ...(structured === undefined ? {} : { structured }) };
  switch (stopReason) {
    case 'end_turn':
      return { stopReason: 'completed', output: turn.text ?? said, ...shared };
    case 'max_tokens':
      return { stopReason: 'max-tokens', output: said, ...shared };
    case 'refusal':
      return { stopReason: 'refusal', output: said, ...shared };
    case 'cancelled':
      return { stopReason: 'aborted', output: said, ...shared };
    case 'max_turn_requests': {
      if (spent?.budget === 'tokens') return { stopReason: 'max-tokens', output: said, ...shared };
      return { stopReason: 'error', output: said, diagnostic: `its budget is spent: ${spent?.budget ?? 'steps'}`, ...shared };
    }
    default:
      return stopReason satisfies never;
  }
}

/** The catalogue's own words hold no secret. */
export function resultOfFailure(error: ServerError, said: string): TurnResult {
  const usage = error.data?.['usage'] as TurnUsage | undefined;
  const result: TurnResult = { stopReason: 'error', output: said, diagnostic: `${error.code}: ${error.message}` };
  return usage === undefined ? result : { ...result, usage: usageOf(usage) };
}

/** With what its own subagents used. */
function usageOf(usage: TurnUsage): SubagentUsage {
  const { subagents, costUsd } = usage;
  return {
    inputTokens: usage.inputTokens + (subagents?.inputTokens ?? 0),
    outputTokens: usage.outputTokens + (subagents?.outputTokens ?? 0),
    cacheReadTokens: usage.cacheReadTokens + (subagents?.cacheReadTokens ?? 0),
    reasoningTokens: usage.reasoningTokens + (subagents?.reasoningTokens ?? 0),
    // The cost of a turn includes that of its subagents.
    ...(costUsd === undefined ? {} : { costUsd }),
  };
}
