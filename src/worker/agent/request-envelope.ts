/**
 * What a request carries beside its messages, and the log's record of it.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EventData } from '../../shared/events.ts';
import type { ModelRequest } from '../model/model-adapter.ts';
import type { AgentContext } from './agent-context.ts';
import { instructionsIn, systemPrompt, type SystemPromptFacts } from './system-prompt.ts';
import type { TurnScope } from './turn-scope.ts';

export interface RequestEnvelope extends Pick<ModelRequest, 'system' | 'tools'> {
  readonly header: EventData['request/header'];
  /** Size of the system text and the tool schemas, in characters. */
  readonly chars: number;
  /** What the system text holds of the workspace's instruction files. */
  readonly instructions: string;
}

/** Hardly anything of it changes while an agent lives, and the tools' text is long: made anew only for what has changed. */
const envelopes = new WeakMap<AgentContext, RequestEnvelope>();

export function requestEnvelope(context: AgentContext): RequestEnvelope {
  const known = envelopes.get(context);
  const { model } = context.model;
  const block = context.instructions?.block ?? '';
  const tools = context.tools.schemas();
  if (known?.header.model === model && known.instructions === block && known.tools === tools) return known;
  const envelope =
    known?.instructions !== block || known.tools !== tools
      ? makeEnvelope(context, block)
      : { ...known, header: { ...known.header, model } };
  envelopes.set(context, envelope);
  return envelope;
}

/** What the log's last header has of the instruction files; `undefined` when its system text was made of something else. */
export function loggedInstructions(context: AgentContext): string | undefined {
  const system = context.history.header?.system;
  const known = envelopes.get(context);
  if (known?.system === system) return known?.instructions;
  return system === undefined ? undefined : instructionsIn(system, context.settings.systemPrompt, factsOf(context));
}

function factsOf(context: AgentContext): SystemPromptFacts {
  return {
    cwd: context.cwd,
    additionalDirectories: (context.toolParts.roots ?? []).filter((root) => root !== context.cwd),
    platform: process.platform,
    // Others come and go, and would make another system text of it each time.
    toolNames: context.tools.ownNames,
    persona: context.options.persona,
    finalAnswer: context.tools.finalAnswer !== undefined,
  };
}

function makeEnvelope(context: AgentContext, instructions: string): RequestEnvelope {
  const tools = context.tools.schemas();
  const toolNames = tools.map((tool) => tool.name);
  const system = systemPrompt(context.settings.systemPrompt, { ...factsOf(context), instructions });
  const { provider, model, sampling } = context.model;
  const toolsHash = context.tools.hash();
  const header = { provider, model, system, tools: toolNames, toolsHash, ...(sampling === undefined ? {} : { sampling }) };
  return { system, tools, instructions, header, chars: system.length + JSON.stringify(tools).length };
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
