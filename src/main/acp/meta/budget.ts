/**
 * `budget` on the wire: limits of one turn, or of all turns of a session together.
 */
import * as z from 'zod/v4';
import type { Budget, Prices } from '../../../shared/session-options.ts';
import { refusal } from './extension.ts';

/** Far beyond anything that is meant, and well inside what numbers hold. */
const most = 1e12;

const count = z.lazy(() => z.int().min(1).max(most).optional());

/** A deadline needs its offset from UTC: a time without one would mean something else on every machine. */
export const budgetSchema = z.lazy(() =>
  z
    .strictObject({
      deadline: z.iso.datetime({ offset: true, error: 'expected an ISO 8601 time with Z or an offset' }).optional(),
      maxWallMs: count,
      maxSteps: count,
      maxToolCalls: count,
      maxTokens: count,
      maxCostUsd: z.number().positive().max(most).optional(),
    })
    .transform(
      ({ deadline, ...limits }): Budget => ({ ...present(limits), ...(deadline === undefined ? {} : { deadline: Date.parse(deadline) }) }),
    ),
);

/** @throws ServerError INVALID_PARAMS for a cost budget where nobody said what tokens cost: it could not be kept */
export function refuseUnknownCost(budget: Budget | undefined, prices: Prices | undefined): void {
  if (budget?.maxCostUsd === undefined || prices !== undefined) return;
  throw refusal('budget.maxCostUsd', 'no prices are known to this server, so it cannot keep a budget in dollars; set its prices first.');
}

/** Without members that are `undefined`: what is stored and compared has only what was given. */
export function present<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
