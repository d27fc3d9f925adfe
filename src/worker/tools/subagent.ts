/**
 * The `subagent` tool: hands a task to another agent and gives back its final answer, or an id to collect it by.
 *
 * What runs the child is hidden behind the session's runs; here stand the arguments and the wording.
 */
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';
import { titleLine } from '../display/title-line.ts';
import { runOutcome } from '../subagents/run-outcome.ts';
import { abortedBeforeStart } from '../subagents/subagent-run.ts';
import { storedUsageLine } from '../subagents/usage-line.ts';
import { completeText } from './draft-view.ts';
import { failed, succeeded } from './outcome.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

export interface SubagentArgs {
  readonly description: string;
  readonly prompt: string;
  readonly agent?: string;
  readonly run_in_background?: boolean;
}

const longestPrompt = 200_000;

/** The tool for these providers, of which there is at least one. */
export function subagentTool(providers: readonly SubagentProvider[]): Tool<SubagentArgs> {
  const agentOf = (args: SubagentArgs): string => args.agent ?? providers[0]?.name ?? '';
  return {
    name: 'subagent',
    description: [
      'Hands a task to another agent, which works on its own, with its own tools and without this conversation, and gives back its final answer. Use it for a part of the work that can be described whole, so that its steps need no room here.',
      'Several calls in one answer run side by side. With run_in_background the call returns a job id at once: a notice says when the job has ended, subagent_output reads it, subagent_kill ends it.',
    ].join('\n'),
    parameters: {
      type: 'object',
      properties: {
        description: { type: 'string', minLength: 1, maxLength: 200, description: 'The task in three to five words.' },
        prompt: {
          type: 'string',
          minLength: 1,
          maxLength: longestPrompt,
          description:
            'The whole task: all that the agent must know, where to look, and what its final answer must hold. It sees nothing else.',
        },
        ...(providers.length > 1 ? { agent: agentSchema(providers) } : {}),
        run_in_background: { type: 'boolean', description: 'Return a job id at once and let the agent work on.' },
      },
      required: ['description', 'prompt'],
      additionalProperties: false,
    },
    isParallelSafe: () => true,
    access: (args) => ({ kind: 'delegate', provider: agentOf(args) }),
    execute: (args, context) => delegate(args, agentOf(args), context),
    presentDraft: (draft) => ({ title: completeText(draft, 'description') ?? 'Subagent', kind: 'think' }),
    presentCall: (args) => {
      const suffix = args.agent === undefined ? '' : ` (${args.agent})`;
      return { card: 'generic', title: `${titleLine(args.description, 'Subagent')}${suffix}`, kind: 'think', rawInput: { ...args } };
    },
    presentResult: (_args, outcome) => ({ card: 'generic', content: [outcome.text, ...storedUsageLine(outcome.meta?.['usage'])] }),
  };
}

function agentSchema(providers: readonly SubagentProvider[]): object {
  const lines = providers.map(({ name, description }) => `${name}: ${description ?? defaultDescription(name)}`);
  return {
    type: 'string',
    enum: providers.map(({ name }) => name),
    description: `Which agent; ${providers[0]?.name} when it is left out.\n${lines.join('\n')}`,
  };
}

function defaultDescription(name: string): string {
  return name === 'self' ? 'an agent like you, with the same tools and rights' : 'another agent';
}

async function delegate(args: SubagentArgs, provider: string, context: ToolContext): Promise<ToolOutcome> {
  if (context.signal.aborted) return failed('ABORTED', `Error: ${abortedBeforeStart}`);
  if (context.subagents === undefined) return failed('SUBAGENTS_UNAVAILABLE', 'Error: this session may not delegate.');
  const background = args.run_in_background === true;
  const started = await context.subagents.start({
    callId: context.callId,
    provider,
    description: titleLine(args.description, 'subagent'),
    prompt: args.prompt,
    background,
    left: context.budgetLeft(),
    traceparent: context.traceparent,
    signal: context.signal,
  });
  if (!started.ok) return failed(started.code, `Error: ${started.message}`);
  const { run } = started;
  if (background) return succeeded(`started background subagent job ${run.jobId}`, { jobId: run.jobId });
  return runOutcome(await run.result);
}
