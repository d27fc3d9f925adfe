/**
 * How a turn comes to its end: with what the model said, or, where the session must answer in a given form, with a call of
 * `final_answer` that meets it. A model that does not give one is reminded, but not for ever.
 */
import type { TurnEndReason } from '../../shared/events.ts';
import { finalAnswerName } from '../tools/final-answer.ts';
import type { AgentContext } from './agent-context.ts';
import type { PlannedCall } from './tool-calls.ts';
import type { TurnScope } from './turn-scope.ts';

/** Ends without an answer that are sent back. */
const mostReminders = 2;
/** Answers that do not meet the schema, after which the model is not asked again. */
const mostMisses = 5;

const reminder = `[Text alone does not end your work here. Call ${finalAnswerName} now, with your answer as its arguments.]`;

const unmet: TurnEndReason = {
  kind: 'error',
  code: 'OUTPUT_SCHEMA_UNMET',
  message: `The model did not give a final answer that meets the session's output schema.`,
};

/** After the calls of a step: ends the turn when one of them was the answer. A person's word that waits comes first. */
export function takeFinalAnswer(context: AgentContext, scope: TurnScope, calls: readonly PlannedCall[]): void {
  if (context.tools.finalAnswer === undefined) return;
  if (scope.structured === undefined) {
    if (calls.some(({ request, refusal }) => request.name === finalAnswerName && refusal !== undefined)) scope.unmet.misses += 1;
    if (scope.unmet.misses >= mostMisses) scope.end(unmet);
  } else if (!context.inbox.hasSteers) {
    scope.end({ kind: 'completed' });
  }
}

/** After a step that called nothing: the turn is complete, unless an answer is still owed. */
export function complete(context: AgentContext, scope: TurnScope): void {
  if (context.tools.finalAnswer === undefined || scope.structured !== undefined) {
    scope.end({ kind: 'completed' });
    return;
  }
  if (scope.unmet.reminders >= mostReminders) {
    scope.end(unmet);
    return;
  }
  scope.unmet.reminders += 1;
  context.inbox.addNotice(reminder);
}
