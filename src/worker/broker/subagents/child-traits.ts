/**
 * What a child said of itself in `initialize`, as far as a run depends on it.
 *
 * Options beyond ACP travel in `_meta["dsh-acp"]` of `session/new`, and only to a child that announced them: one that
 * does not know them would ignore them in silence.
 */
import type { InitializeResponse } from '@agentclientprotocol/sdk';
import type { SubagentCapabilities } from '../../../shared/subagent-protocol.ts';

export const metaKey = 'dsh-acp';

export interface ChildTraits {
  readonly capabilities: SubagentCapabilities;
  /** Takes a budget with its session. */
  readonly budget: boolean;
  /** Takes a cap of the depth with its session. */
  readonly maxDepth: boolean;
  /** Starts a session in a given permission mode. */
  readonly mode: boolean;
  /** Takes `session/close`. */
  readonly closesSessions: boolean;
  /** Promises that no update follows the answer to its prompt. */
  readonly answersLast: boolean;
}

export function readTraits(response: InitializeResponse): ChildTraits {
  const capabilities = record(response.agentCapabilities);
  const meta = capabilities['_meta'];
  const ours = record(record(meta)[metaKey]);
  const subagent = record(ours['subagent']);
  const says = (name: string): boolean => subagent[name] === true;
  const taken = record(ours['extensions'])['session/new'];
  const takes = (name: string): boolean => Array.isArray(taken) && taken.includes(name);
  return {
    capabilities: {
      persona: says('persona'),
      tools: says('tools'),
      depth: says('depth'),
      outputSchema: says('outputSchema'),
      inheritsParentContext: false,
    },
    budget: takes('budget'),
    maxDepth: takes('maxDepth'),
    mode: takes('mode'),
    closesSessions: isRecord(record(capabilities['sessionCapabilities'])['close']),
    answersLast: isRecord(record(meta)[metaKey]),
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object, or an empty one in place of anything else. */
export function record(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
