/**
 * The `bash_kill` tool: ends a background task and says how it ended.
 */
import { refusedTask, statusLine, statusMeta, withBroker } from './bash-task-answer.ts';
import { controlMarks } from './contained-marks.ts';
import type { Tool } from './tool.ts';

export interface BashKillArgs {
  readonly task_id: string;
}

export const bashKillTool: Tool<BashKillArgs> = {
  name: 'bash_kill',
  description: 'Ends a background task and everything it has started. Its last output can still be read with bash_output.',
  parameters: {
    type: 'object',
    properties: { task_id: { type: 'string', minLength: 1, description: 'The id that bash gave.' } },
    required: ['task_id'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: () => ({ kind: 'none' }),
  execute: (args, context) =>
    withBroker(async () => {
      const answer = await context.broker.killBackground(context.sessionId, args.task_id);
      if (!answer.ok) return refusedTask(args.task_id, answer.code);
      return {
        text: [`Ended task ${args.task_id}.`, ...controlMarks(answer.value), statusLine(answer.value)].join('\n'),
        isError: false,
        meta: statusMeta(answer.value),
      };
    }),
  presentDraft: () => ({ title: 'End a background task', kind: 'execute' }),
  presentCall: (args) => ({ card: 'generic', title: `End ${args.task_id}`, kind: 'execute', rawInput: { ...args } }),
  presentResult: (_args, outcome) => ({ card: 'generic', content: [outcome.text] }),
};
