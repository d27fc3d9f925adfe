/**
 * What a client may ask of one prompt.
 */
import { createHash } from 'node:crypto';
import * as z from 'zod/v4';
import type { PromptBlock } from '../../../shared/events.ts';
import type { Prices, PromptOptions } from '../../../shared/session-options.ts';
import { budgetSchema, present, refuseUnknownCost } from './budget.ts';
import { readExtension, type WithMeta } from './extension.ts';

/** W3C trace context, level 1: version, trace, parent, flags. Version ff and ids of zeros alone are invalid. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export const traceparentSchema = z.string().regex(traceparentPattern, 'expected a traceparent of W3C trace context');

const schema = z.lazy(() =>
  z.strictObject({
    budget: budgetSchema.optional(),
    key: z.string().min(1).max(200).optional(),
    messageId: z.string().min(1).max(128).optional(),
    priority: z.int().min(-100).max(100).optional(),
    traceparent: traceparentSchema.optional(),
  }),
);

/** @throws ServerError INVALID_PARAMS naming the member */
export function promptOptions(params: WithMeta, content: readonly PromptBlock[], prices: Prices | undefined): PromptOptions {
  // Most prompts say nothing, and each passes here.
  if (params._meta == null) return {};
  const { key, traceparent, ...given } = readExtension(params, schema);
  refuseUnknownCost(given.budget, prices);
  return present({
    ...given,
    key: key === undefined ? undefined : { id: key, payload: payloadOf(content) },
    traceparent: traceparent ?? ambientTraceparent(params),
  });
}

/** ACP reserves the word at the root of `_meta`. As W3C has it, one that is not valid there is as good as none. */
function ambientTraceparent(params: WithMeta): string | undefined {
  const value = params._meta?.['traceparent'];
  return typeof value === 'string' && traceparentPattern.test(value) ? value : undefined;
}

function payloadOf(content: readonly PromptBlock[]): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}
