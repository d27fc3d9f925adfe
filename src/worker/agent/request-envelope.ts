/**
 * What a request carries beside its messages, and the log's record of it.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EventData } from '../../shared/events.ts';
import type { ModelRequest } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import { systemPrompt } from './system-prompt.ts';
import type { TurnScope } from './turn-scope.ts';

export interface RequestEnvelope extends Pick<ModelRequest, 'system' | 'tools'> {
  readonly header: EventData['request/header'];
  /** Size of the system text and the tool schemas, in characters. */
  readonly chars: number;
}

/** Nothing of it changes while an agent lives, and the tools' text is long: made once per agent. */
const envelopes = new WeakMap<AgentContext, RequestEnvelope>();

export function requestEnvelope(context: AgentContext): RequestEnvelope {
  const known = envelopes.get(context);
  if (known !== undefined) return known;
  const envelope = makeEnvelope(context);
  envelopes.set(context, envelope);
  return envelope;
}

function makeEnvelope(context: AgentContext): RequestEnvelope {
  const tools = context.tools.schemas();
  const toolNames = tools.map((tool) => tool.name);
  const system = systemPrompt(context.settings.systemPrompt, {
    cwd: context.cwd,
    platform: process.platform,
    additionalDirectories: (context.toolParts.roots ?? []).filter((root) => root !== context.cwd),
    toolNames,
    persona: context.options.persona,
    finalAnswer: context.tools.finalAnswer !== undefined,
  });
  const { provider, model, sampling } = context.model;
  const toolsHash = context.tools.hash();
  const header = { provider, model, system, tools: toolNames, toolsHash, ...(sampling === undefined ? {} : { sampling }) };
  return { system, tools, header, chars: system.length + JSON.stringify(tools).length };
}

/** Logs the header unless the log's last one says the same. */
export function recordHeader(context: AgentContext, scope: TurnScope, { header }: RequestEnvelope): void {
  const last = context.history.header;
  const same =
    last?.provider === header.provider &&
    last.model === header.model &&
    last.system === header.system &&
    last.toolsHash === header.toolsHash &&
    isDeepStrictEqual(last.sampling, header.sampling) &&
    last.tools.join() === header.tools.join();
  if (!same) scope.record({ type: 'request/header', data: header });
}
