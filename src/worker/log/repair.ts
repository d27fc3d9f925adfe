/**
 * Closes a turn whose end never reached the log, so that the model's history is whole again: every call has a result, what
 * the user saw streaming is kept, and nothing is run a second time. Pure; keeps every valid event and only adds.
 */
import type { EventInput } from '../../shared/events.ts';
import type { OpenCall, OpenTurn } from './open-turn-tracker.ts';

const notStartedText =
  'This tool was not started: the server stopped before it could run. Nothing was changed by this call. Call it again if it is still needed.';
const unknownText =
  'The outcome of this tool is unknown: the server stopped while it was running, so it may have had all, part or none of its effects. ' +
  'Check the present state first. Call it again only if that shows it is needed, or if the call reads only or can safely be repeated.';

/** The events to append after an interrupted turn, in order: partial message, calls with their results, step end, turn end. */
export function closingEvents(open: OpenTurn): EventInput[] {
  const { turn, message, usage } = open;
  const events: EventInput[] = [];
  if (message !== undefined && message.text + message.reasoning !== '') {
    events.push({ type: 'assistant/message', data: { turn, ...message, toolCalls: [], finish: 'interrupted' } });
  }
  for (const call of open.calls) {
    const { step, callId, unlogged } = call;
    // A result stands behind its call, in the log and before the client.
    if (unlogged !== undefined) events.push({ type: 'tool/call', data: { turn, step, callId, ...unlogged } });
    events.push(closingResult(turn, call));
  }
  if (open.step !== undefined) {
    events.push({ type: 'step/end', data: { turn, step: open.step } });
  }
  events.push({ type: 'turn/end', data: { turn, reason: { kind: 'interrupted' }, usage } });
  return events;
}

function closingResult(turn: number, call: OpenCall): EventInput {
  const { step, callId, started } = call;
  const text = started ? unknownText : notStartedText;
  const code = started ? 'TOOL_OUTCOME_UNKNOWN' : 'TOOL_NOT_STARTED';
  return { type: 'tool/result', data: { turn, step, callId, text, isError: true, code } };
}
