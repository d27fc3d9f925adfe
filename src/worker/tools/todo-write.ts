/**
 * `todo_write`: replaces the session's plan as a whole. It touches nothing outside the session.
 */
import type { TodoEntry } from '../../shared/events.ts';
import type { ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import { failureView, succeeded } from './outcome.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const maxTodos = 100;
const maxContentLength = 1000;

export interface TodoWriteArgs {
  readonly todos: readonly TodoEntry[];
}

function countDone(args: TodoWriteArgs): number {
  return args.todos.filter((todo) => todo.status === 'completed').length;
}

function summary(args: TodoWriteArgs): string {
  return args.todos.length === 0 ? 'cleared' : `${countDone(args)} of ${args.todos.length} done`;
}

async function execute(args: TodoWriteArgs, context: ToolContext): Promise<ToolOutcome> {
  // Copied field by field: the plan is kept, the arguments are not.
  context.writeTodos(
    args.todos.map(({ content, status, priority }) => ({ content, status, ...(priority === undefined ? {} : { priority }) })),
  );
  return succeeded(`Plan updated (${summary(args)}).`);
}

function presentCall(args: TodoWriteArgs): ToolCallView {
  return { card: 'generic', title: `Update plan (${summary(args)})`, kind: 'think' };
}

function presentResult(_args: TodoWriteArgs, outcome: ToolOutcome): ToolResultView {
  return outcome.isError ? failureView(outcome) : { card: 'generic', content: [outcome.text] };
}

export const todoWriteTool: Tool<TodoWriteArgs> = {
  name: 'todo_write',
  description:
    'Sets the plan that the user sees. Send the whole list every time; it replaces the one before. Keep one entry in_progress ' +
    'while you work on it.',
  parameters: {
    type: 'object',
    properties: {
      todos: {
        type: 'array',
        maxItems: maxTodos,
        items: {
          type: 'object',
          properties: {
            content: { type: 'string', minLength: 1, maxLength: maxContentLength, description: 'What is to be done.' },
            status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
            priority: { type: 'string', enum: ['high', 'medium', 'low'], description: 'How much it matters. medium by default.' },
          },
          required: ['content', 'status'],
          additionalProperties: false,
        },
      },
    },
    required: ['todos'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: () => ({ kind: 'none' }),
  execute,
  presentDraft: () => ({ title: 'Update plan', kind: 'think', rawInput: false }),
  presentCall,
  presentResult,
};
