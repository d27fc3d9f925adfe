/** Budget of one turn: `[budget]`. */
import type { KeySpec } from '../key-spec.ts';
import { amount, count, milliseconds } from '../value-types.ts';

export const budgetKeys = {
  max_steps: {
    section: 'budget',
    type: count(0, 1_000_000),
    default: 200,
    doc: 'Model calls of one turn; 0 is no limit.',
  },
  max_tool_calls: {
    section: 'budget',
    type: count(0, 1_000_000),
    default: 1_000,
    doc: 'Tool calls of one turn; 0 is no limit.',
  },
  max_tokens: {
    section: 'budget',
    type: count(0, 1_000_000_000_000),
    default: 0,
    doc: 'Input and output tokens of one turn, all steps together; 0 is no limit.',
  },
  max_wall_ms: {
    section: 'budget',
    type: milliseconds(),
    default: undefined,
    defaultText: '0; 3600000 for the automation profile',
    doc: 'Time of one turn; 0 is no limit.',
  },
  max_cost_usd: {
    section: 'budget',
    type: amount(1_000_000_000),
    default: 0,
    doc: 'US dollars of one turn, by the prices of the provider; 0 is no limit.',
  },
} as const satisfies Record<string, KeySpec>;
