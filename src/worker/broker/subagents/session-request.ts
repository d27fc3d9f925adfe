/**
 * What a child's session is asked to be: the params of `session/new`, with the options that the child announced.
 */
import type { NewSessionRequest } from '@agentclientprotocol/sdk';
import type { JsonObject } from '../../../shared/errors.ts';
import type { SubagentProvider, SubagentRequest } from '../../../shared/subagent-protocol.ts';
import { type ChildTraits, metaKey } from './child-traits.ts';

export type SessionParams =
  | { readonly ok: true; readonly params: NewSessionRequest }
  /** An option is configured that the child does not take: left out, the child would do what it was not meant to. */
  | { readonly ok: false; readonly option: 'persona' | 'tools' | 'outputSchema' };

export function sessionParams(provider: SubagentProvider, request: SubagentRequest, cwd: string, traits: ChildTraits): SessionParams {
  const options: JsonObject = {};
  if (provider.persona !== undefined) {
    if (!traits.capabilities.persona) return { ok: false, option: 'persona' };
    options['persona'] = provider.persona;
  }
  if (provider.tools !== undefined) {
    if (!traits.capabilities.tools) return { ok: false, option: 'tools' };
    options['tools'] = [...provider.tools];
  }
  if (provider.outputSchema !== undefined) {
    if (!traits.capabilities.outputSchema) return { ok: false, option: 'outputSchema' };
    options['outputSchema'] = provider.outputSchema;
  }
  if (traits.capabilities.depth) options['depth'] = request.depth;
  if (traits.maxDepth) options['maxDepth'] = lower(provider.maxDepth, request.maxDepth);
  if (traits.mode && request.mode !== undefined) options['mode'] = request.mode;
  const budget = traits.budget ? budgetOf(request) : {};
  if (Object.keys(budget).length > 0) options['budget'] = budget;
  const meta = Object.keys(options).length === 0 ? {} : { _meta: { [metaKey]: options } };
  return { ok: true, params: { cwd, mcpServers: [], ...meta } };
}

function lower(own: number, ofParent = own): number {
  return Math.min(own, ofParent);
}

function budgetOf(request: SubagentRequest): JsonObject {
  const { deadline, maxTokens, maxCostUsd, maxSteps, maxToolCalls } = request;
  return {
    ...(deadline === undefined ? {} : { deadline: new Date(deadline).toISOString() }),
    ...(maxTokens === undefined ? {} : { maxTokens: Math.max(1, Math.floor(maxTokens)) }),
    // None at all would be no limit.
    ...(maxCostUsd === undefined ? {} : { maxCostUsd: Math.max(1e-9, maxCostUsd) }),
    ...(maxSteps === undefined ? {} : { maxSteps: Math.max(1, maxSteps) }),
    ...(maxToolCalls === undefined ? {} : { maxToolCalls: Math.max(1, maxToolCalls) }),
  };
}
