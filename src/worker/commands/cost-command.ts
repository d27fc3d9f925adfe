/**
 * `/cost`: what the session and its last turn have used.
 */
import { commandWords } from '../../shared/commands/command-words.ts';
import type { TurnUsage } from '../../shared/events.ts';
import type { SessionSums } from '../agent/session-ledger.ts';
import { tokensOf } from '../agent/turn-usage.ts';
import type { UsageReport } from '../agent/usage-report.ts';
import type { SessionCommand } from './session-command.ts';

export function costCommand(report: () => UsageReport): SessionCommand {
  return { ...commandWords('cost'), run: async () => ({ kind: 'text', text: usageText(report()) }) };
}

function usageText({ session, lastTurn, priced, context }: UsageReport): string {
  const lines = [`- **Session**: ${grouped(session.tokens)} tokens, ${worked(session)}${priced ? `, ${dollars(session.costUsd)}` : ''}`];
  if (lastTurn !== undefined) lines.push(`- **Last turn**: ${lastTurnText(lastTurn)}`);
  const percent = Math.round((100 * context.tokens) / context.window);
  lines.push(`- **Context**: about ${grouped(context.tokens)} of ${grouped(context.window)} tokens (${percent} %)`);
  if (!priced) lines.push('- **Cost**: unknown, since the settings hold no prices');
  return lines.join('\n');
}

function lastTurnText(turn: TurnUsage): string {
  const { inputTokens, cacheReadTokens, outputTokens, guessedTokens, subagents, costUsd } = turn;
  const parts = [`${grouped(inputTokens + cacheReadTokens)} tokens in (${grouped(cacheReadTokens)} cached), ${grouped(outputTokens)} out`];
  if (guessedTokens !== undefined) parts.push(`about ${grouped(guessedTokens)} more that the provider did not count`);
  if (subagents !== undefined) parts.push(`${grouped(tokensOf(subagents))} by subagents`);
  parts.push(worked(turn));
  if (costUsd !== undefined) parts.push(dollars(costUsd));
  return parts.join(', ');
}

function worked({ steps, toolCalls, elapsedMs }: Pick<SessionSums, 'steps' | 'toolCalls' | 'elapsedMs'>): string {
  return `${grouped(steps)} steps, ${grouped(toolCalls)} tool calls, ${(elapsedMs / 1000).toFixed(1)} s`;
}

function dollars(usd: number): string {
  return `$${usd.toFixed(4)}`;
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
