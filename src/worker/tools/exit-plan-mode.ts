/**
 * `exit_plan_mode`: puts a plan to the person, whose approval ends plan mode within the running turn.
 *
 * Offered in every mode and refused outside plan mode: the list of tools is part of what providers cache of a conversation, and
 * would change with each change of the mode.
 */
import { planToolName } from '../../shared/tool-names.ts';
import type { ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import type { PlanVerdict } from '../permission/plan-approval.ts';
import { failed, succeeded } from './outcome.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const longestPlan = 64 * 1024;

export interface ExitPlanModeArgs {
  readonly plan: string;
}

async function execute(args: ExitPlanModeArgs, { plan, callId, signal }: ToolContext): Promise<ToolOutcome> {
  if (plan === undefined) return failed('NOT_PLANNING', 'This session cannot put a plan to a person. Give the plan as your answer.');
  const view = presentCall(args);
  return outcomeOf(await plan.present({ callId, toolName: planToolName, view, rawInput: {} }, signal));
}

function outcomeOf(verdict: PlanVerdict): ToolOutcome {
  switch (verdict.kind) {
    case 'approved':
      return succeeded(`The person approved the plan, and plan mode is over: the mode is now "${verdict.mode}". Carry the plan out.`, {
        approvedMode: verdict.mode,
      });
    case 'not-planning':
      return failed('NOT_PLANNING', `The session is not in plan mode: its mode is "${verdict.mode}". Go on with the work itself.`);
    case 'rejected':
      return failed(
        'PLAN_REJECTED',
        'The person does not approve this plan yet, and the session stays in plan mode. Go on planning: if you do not know what is missing, ask, and end your answer there.',
      );
    case 'cancelled':
      return failed('PERMISSION_CANCELLED', 'The turn was cancelled while the plan waited for approval.');
    case 'unanswered':
      return failed(
        'PERMISSION_UNAVAILABLE',
        'Nobody answered, so the session stays in plan mode. Give the plan as your answer, and end there.',
      );
    default:
      return verdict satisfies never;
  }
}

function presentCall({ plan }: ExitPlanModeArgs): ToolCallView {
  // The plan is shown as it is; a second copy as raw input would only double the frame.
  return { card: 'generic', title: 'Plan for approval', kind: 'switch_mode', rawInput: {}, content: [plan] };
}

function presentResult({ plan }: ExitPlanModeArgs, outcome: ToolOutcome): ToolResultView {
  return outcome.isError
    ? { card: 'generic', title: 'Plan not approved', content: [plan, outcome.text] }
    : { card: 'generic', title: 'Plan approved', content: [plan] };
}

export const exitPlanModeTool: Tool<ExitPlanModeArgs> = {
  name: planToolName,
  description:
    'In plan mode only: shows your plan to the person and asks for approval. Call it when the plan is complete, not to report on ' +
    'research. When it is approved, plan mode ends and you carry the plan out in the same turn. In every other mode it does nothing.',
  parameters: {
    type: 'object',
    properties: {
      plan: {
        type: 'string',
        minLength: 1,
        maxLength: longestPlan,
        description: 'The plan as Markdown: what you would change and where, in order, and how you would check it.',
      },
    },
    required: ['plan'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: () => ({ kind: 'none' }),
  execute,
  presentCall,
  presentResult,
};
