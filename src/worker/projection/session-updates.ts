/**
 * What a client shows of the session as a whole: how full its window is, what it has cost, what it is called.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { ContextUse, EventData } from '../../shared/events.ts';

const currency = 'USD';

/** None for a log that was written before this was recorded. */
export function usageUpdates(context: ContextUse | undefined): SessionUpdate[] {
  if (context === undefined) return [];
  const { used, size, costUsd } = context;
  return [{ sessionUpdate: 'usage_update', used, size, ...(costUsd === undefined ? {} : { cost: { amount: costUsd, currency } }) }];
}

/** @param time epoch milliseconds of the event, if it has one */
export function titleUpdates({ title }: Pick<EventData['session/title'], 'title'>, time: unknown): SessionUpdate[] {
  const updatedAt = typeof time === 'number' ? { updatedAt: new Date(time).toISOString() } : {};
  return [{ sessionUpdate: 'session_info_update', title, ...updatedAt }];
}
