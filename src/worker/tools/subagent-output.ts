/**
 * The `subagent_output` tool: what a background run has done since the last look, and its result once it has ended.
 */
import { type BackgroundJob } from '../subagents/background-jobs.ts';
import { runOutcome } from '../subagents/run-outcome.ts';
import type { SubagentRun } from '../subagents/subagent-run.ts';
import { storedUsageLine } from '../subagents/usage-line.ts';
import { abortableSleep } from '../agent/abortable-sleep.ts';
import { failed, succeeded } from './outcome.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

export interface SubagentOutputArgs {
  readonly job_id: string;
  readonly wait_ms?: number;
}

const maxWaitMs = 600_000;

export const subagentOutputTool: Tool<SubagentOutputArgs> = {
  name: 'subagent_output',
  description:
    'Gives the result of a background subagent job once it has ended; before that, its state and what it has done since the last call. With wait_ms it waits that long for the end.',
  parameters: {
    type: 'object',
    properties: {
      job_id: { type: 'string', minLength: 1, maxLength: 100, description: 'The id that subagent gave.' },
      wait_ms: {
        type: 'integer',
        minimum: 0,
        maximum: maxWaitMs,
        description: 'How long to wait for the end, in milliseconds; 0 by default.',
      },
    },
    required: ['job_id'],
    additionalProperties: false,
  },
  isParallelSafe: () => true,
  access: () => ({ kind: 'none' }),
  execute: readJob,
  presentCall: (args) => ({ card: 'generic', title: `Output of ${args.job_id}`, kind: 'think', rawInput: { ...args } }),
  presentResult: (_args, outcome) => ({ card: 'generic', content: shown(outcome) }),
};

async function readJob(args: SubagentOutputArgs, context: ToolContext): Promise<ToolOutcome> {
  const found = context.subagents?.job(args.job_id);
  if (found === undefined) return unknownJob(args.job_id, context);
  if (found.state === 'running') await endOrTimeout(found.run, args.wait_ms ?? 0, context.signal);
  if (context.signal.aborted) return failed('ABORTED', '[aborted while waiting; the subagent may run on]');
  const job = context.subagents?.job(args.job_id);
  return job === undefined ? unknownJob(args.job_id, context) : jobOutcome(args.job_id, job);
}

async function endOrTimeout(run: SubagentRun, waitMs: number, signal: AbortSignal): Promise<void> {
  if (waitMs === 0) return;
  const ended = new AbortController();
  void run.result.then(() => ended.abort());
  await abortableSleep(Math.min(waitMs, maxWaitMs), AbortSignal.any([signal, ended.signal]));
}

function jobOutcome(id: string, job: BackgroundJob): ToolOutcome {
  if (job.state === 'ended') return runOutcome(job.result);
  const { run } = job;
  const news = run.news.text();
  run.news.forgetShown();
  const seconds = Math.round(run.elapsedMs / 1000);
  const state = `[${id} (${job.description}) is running, for ${seconds} s so far]`;
  // The model gets what is new; a person sees the run as it stands, as on the card of a run in the foreground.
  return succeeded(`${state}\n${news === '' ? '(nothing new)' : news}`, { state, progress: run.progress.text() });
}

function shown({ text, meta }: ToolOutcome): string[] {
  const { state, progress, usage } = meta ?? {};
  if (typeof state === 'string' && typeof progress === 'string') return progress === '' ? [state] : [state, progress];
  return [text, ...storedUsageLine(usage)];
}

/** An id that this session did not give: other sessions' ids mean nothing here. */
export function unknownJob(id: string, context: ToolContext): ToolOutcome {
  const ids = context.subagents?.jobIds() ?? [];
  const known = ids.length === 0 ? 'it has none' : `its jobs are ${ids.join(', ')}`;
  return failed('JOB_NOT_FOUND', `there is no background subagent job ${JSON.stringify(id.slice(0, 100))} in this session; ${known}`);
}
