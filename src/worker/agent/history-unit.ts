/**
 * The pieces a history is made of. A unit is whole: a user's message, or an answer together with the results of its
 * calls. Units are what compaction and refusals drop, so a call can never be parted from its result.
 */
import type { EventData } from '../../shared/events.ts';
import { promptParts, promptText } from '../../shared/prompt-text.ts';
import { sendableCall } from '../../shared/sendable-call.ts';
import type { ModelMessage } from '../model/model-adapter.ts';

export interface UserUnit {
  readonly kind: 'user';
  readonly turn: number;
  lastSeq: number;
  /** Absent for a summary. */
  readonly messageId?: string;
  message: Extract<ModelMessage, { role: 'user' }>;
}

export interface AnswerUnit {
  readonly kind: 'answer';
  readonly turn: number;
  readonly step: number;
  lastSeq: number;
  /** `undefined` when nothing of the answer is worth sending again. */
  readonly message: Extract<ModelMessage, { role: 'assistant' }> | undefined;
  /** Results by call id. */
  readonly results: Map<string, string>;
}

export type HistoryUnit = UserUnit | AnswerUnit;

/** What a message costs beside its text: role names and separators, in characters. */
const messageOverhead = 16;

/** What the model reads for a call whose result never reached the log. */
const missingResult = 'Error: the result of this call was not recorded. Check what it did before you repeat it.';

export function userUnit(seq: number, data: EventData['user/message']): UserUnit {
  const { turn, messageId, content } = data;
  const parts = promptParts(content);
  const message = { role: 'user' as const, text: promptText(content), ...(parts === undefined ? {} : { parts }) };
  return { kind: 'user', turn, lastSeq: seq, messageId, message };
}

/** A summary belongs to no turn, and stands for everything up to `throughSeq`. */
export function summaryUnit(throughSeq: number, summary: string): UserUnit {
  const text = `[Summary of the earlier conversation, which is no longer shown]\n\n${summary}`;
  return { kind: 'user', turn: -1, lastSeq: throughSeq, message: { role: 'user', text } };
}

export function answerUnit(seq: number, data: EventData['assistant/message']): AnswerUnit {
  return { kind: 'answer', turn: data.turn, step: data.step, lastSeq: seq, message: answerMessage(data), results: new Map() };
}

function answerMessage(data: EventData['assistant/message']): AnswerUnit['message'] {
  const interrupted = data.finish === 'interrupted';
  const toolCalls = interrupted ? [] : data.toolCalls.map(sendableCall);
  // An answer of reasoning alone is refused by some servers, and without calls no server needs it.
  if (data.text === '' && toolCalls.length === 0) return undefined;
  return { role: 'assistant', text: data.text, reasoning: data.reasoning, toolCalls };
}

/** The units' messages in order. Every call is answered, in call order. */
export function messagesOf(units: readonly HistoryUnit[]): ModelMessage[] {
  // A plain loop: this runs over the whole history at every step.
  const messages: ModelMessage[] = [];
  for (const unit of units) {
    if (unit.message === undefined) continue;
    messages.push(unit.message);
    if (unit.kind === 'user') continue;
    for (const { callId } of unit.message.toolCalls) {
      messages.push({ role: 'tool', callId, text: unit.results.get(callId) ?? missingResult });
    }
  }
  return messages;
}

/** Images of a unit, and how many characters of base64 they are. */
export function unitImages(unit: HistoryUnit): { readonly count: number; readonly chars: number } {
  if (unit.kind !== 'user' || unit.message.parts === undefined) return noImages;
  const images = unit.message.parts.filter((part) => part.type === 'image');
  return { count: images.length, chars: images.reduce((sum, { data }) => sum + data.length, 0) };
}

const noImages = { count: 0, chars: 0 };

/** From now on the model gets a mark in place of each image. */
export function dropImages(unit: UserUnit): void {
  unit.message = { role: 'user', text: unit.message.text };
}

/** How large the unit is in a request, in characters, its images left out. */
export function unitChars(unit: HistoryUnit): number {
  if (unit.message === undefined) return 0;
  if (unit.kind === 'user') return unit.message.text.length + messageOverhead;
  let chars = unit.message.text.length + unit.message.reasoning.length + messageOverhead;
  for (const call of unit.message.toolCalls) chars += call.callId.length + call.name.length + call.arguments.length + messageOverhead;
  for (const text of unit.results.values()) chars += text.length + messageOverhead;
  return chars;
}
