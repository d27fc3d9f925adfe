/**
 * The `bash_output` tool: what a background task has written since the last look.
 */
import type { BackgroundOutput } from '../../shared/broker-protocol.ts';
import { refusedTask, statusLine, statusMeta, withBroker } from './bash-task-answer.ts';
import { clip, keptBytesPerStream } from './bash-result.ts';
import { controlMarks } from './contained-marks.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

export interface BashOutputArgs {
  readonly task_id: string;
  readonly wait_ms?: number;
}

const maxWaitMs = 600_000;
/**
 * A long wait is made of short ones: a read takes the output away, so one that is given up by an abort would lose it.
 */
const sliceMs = 200;

export const bashOutputTool: Tool<BashOutputArgs> = {
  name: 'bash_output',
  description:
    'Gives what a background task has written since the last call, and its status. With wait_ms it waits that long for new output or the end of the task.',
  parameters: {
    type: 'object',
    properties: {
      task_id: { type: 'string', minLength: 1, description: 'The id that bash gave.' },
      wait_ms: {
        type: 'integer',
        minimum: 0,
        maximum: maxWaitMs,
        description: 'How long to wait for news, in milliseconds; 0 by default.',
      },
    },
    required: ['task_id'],
    additionalProperties: false,
  },
  // Each call takes its own part of the output, so calls side by side cannot disturb one another.
  isParallelSafe: () => true,
  access: () => ({ kind: 'none' }),
  execute: (args, context) => withBroker(() => readTask(args, context)),
  presentDraft: () => ({ title: 'Output of a background task', kind: 'execute' }),
  presentCall: (args) => ({ card: 'generic', title: `Output of ${args.task_id}`, kind: 'execute', rawInput: { ...args } }),
  presentResult: (_args, outcome) => ({ card: 'generic', content: [outcome.text] }),
};

async function readTask(args: BashOutputArgs, context: ToolContext): Promise<ToolOutcome> {
  const { signal, broker, sessionId } = context;
  const deadline = performance.now() + Math.min(args.wait_ms ?? 0, maxWaitMs);
  for (;;) {
    if (signal.aborted) return { text: '[aborted while waiting; the task runs on]', isError: true, code: 'ABORTED' };
    const left = deadline - performance.now();
    const answer = await broker.readBackground(sessionId, args.task_id, Math.max(0, Math.min(left, sliceMs)));
    if (!answer.ok) return refusedTask(args.task_id, answer.code);
    const { text, droppedBytes, status } = answer.value;
    const { controlFiles, movedFiles } = answer.value;
    const hasNews = text !== '' || droppedBytes > 0 || controlFiles !== undefined || movedFiles !== undefined;
    if (hasNews || status.state === 'exited' || left <= sliceMs) return outputOutcome(answer.value);
  }
}

function outputOutcome({ text, droppedBytes, status, spillPath, ...control }: BackgroundOutput): ToolOutcome {
  const shown = clip(text, keptBytesPerStream * 1.25);
  const where = spillPath === undefined ? '' : `; the whole output is in ${spillPath}`;
  const parts = [
    droppedBytes > 0 ? `[${droppedBytes} bytes before this were dropped${where}]` : undefined,
    shown === '' ? '(no new output)' : shown.replace(/\n$/, ''),
    ...controlMarks(control),
    statusLine(status),
  ];
  return { text: parts.filter((part) => part !== undefined).join('\n'), isError: false, meta: statusMeta(status) };
}
