/**
 * The `subagent_kill` tool: ends a background run and says what came of it.
 */
import { runOutcome } from '../subagents/run-outcome.ts';
import { failureView, succeeded } from './outcome.ts';
import { unknownJob } from './subagent-output.ts';
import type { Tool } from './tool.ts';

export interface SubagentKillArgs {
  readonly job_id: string;
}

export const subagentKillTool: Tool<SubagentKillArgs> = {
  name: 'subagent_kill',
  description: 'Ends a background subagent job. What it has said so far can still be read with subagent_output.',
  parameters: {
    type: 'object',
    properties: { job_id: { type: 'string', minLength: 1, maxLength: 100, description: 'The id that subagent gave.' } },
    required: ['job_id'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: () => ({ kind: 'none' }),
  execute: async (args, context) => {
    const before = context.subagents?.job(args.job_id);
    const job = await context.subagents?.kill(args.job_id);
    if (job?.state !== 'ended') return unknownJob(args.job_id, context);
    const { meta } = runOutcome(job.result);
    if (before?.state === 'ended') return succeeded(`${args.job_id} had ended already; read it with subagent_output`, meta);
    return succeeded(`ended ${args.job_id} (${job.description})`, meta);
  },
  presentCall: (args) => ({ card: 'generic', title: `End ${args.job_id}`, kind: 'think', rawInput: { ...args } }),
  presentResult: (_args, outcome) => (outcome.isError ? failureView(outcome) : { card: 'generic', content: [outcome.text] }),
};
