/**
 * What came of a question to the person, checked and put into words for the model. The SDK does not look at answers to our
 * requests, so nothing in one is believed.
 */
import type { ClientAnswer } from '../../shared/thread-protocol.ts';
import { sliceWhole } from '../display/title-line.ts';
import { type AskedQuestion, fieldsOf, longestOwnWords } from './ask-user-form.ts';
import { aborted, failed, succeeded } from './outcome.ts';
import type { ToolOutcome } from './tool.ts';

const inProse = 'Ask it in your answer and end your turn there, or go on with what you think best and say what you assumed.';

export function askOutcome(questions: readonly AskedQuestion[], answer: ClientAnswer): ToolOutcome {
  switch (answer.kind) {
    case 'result':
      return resultOutcome(questions, answer.result);
    case 'withdrawn':
      return aborted();
    case 'timeout':
      return failed('ASK_TIMEOUT', `Nobody answered the question in time. ${inProse}`);
    case 'error':
    case 'unavailable':
      return notPut();
    default:
      return answer satisfies never;
  }
}

/** There is no way to the person, or the client does not have it after all. */
export function notPut(): ToolOutcome {
  return failed('ASK_UNAVAILABLE', `The question could not be put to the user. ${inProse}`);
}

function resultOutcome(questions: readonly AskedQuestion[], result: unknown): ToolOutcome {
  const { action, content } = isRecord(result) ? result : {};
  if (action === 'decline') {
    return succeeded(
      'The user declines to answer. Do not ask the same again: decide by yourself what can be decided, and say in your answer what you assumed.',
    );
  }
  if (action === 'cancel') return failed('ASK_DISMISSED', `The user closed the question without an answer. ${inProse}`);
  const answers = action === 'accept' && isRecord(content) ? readAnswers(questions, content) : undefined;
  if (answers === undefined) return failed('ASK_INVALID_ANSWER', `The client sent an answer that does not fit the question. ${inProse}`);
  if (answers.every((one) => one.length === 0)) {
    return failed('ASK_DISMISSED', `The user sent the form without an answer in it. ${inProse}`);
  }
  const texts = questions.map(({ question }, index) => {
    const said = answers[index] ?? [];
    const lines = said.length === 0 ? ['  (no answer)'] : said.map((line) => `  - ${line}`);
    return [questions.length === 1 ? question : `${index + 1}. ${question}`, ...lines].join('\n');
  });
  return succeeded(`The user answered:\n${texts.join('\n')}`, { answered: true });
}

/** The answers to each question, as lines; `undefined` when one of them is none that was offered. */
function readAnswers(questions: readonly AskedQuestion[], content: Record<string, unknown>): string[][] | undefined {
  const answers: string[][] = [];
  for (const [index, question] of questions.entries()) {
    const { choice, own } = fieldsOf(question, index);
    const chosen = choice === undefined ? [] : readChoices(question, member(content, choice));
    const words = own === undefined ? [] : readWords(member(content, own), choice !== undefined);
    if (chosen === undefined || words === undefined) return undefined;
    answers.push([...chosen, ...words]);
  }
  return answers;
}

function readChoices({ choices = [], multiple = false }: AskedQuestion, value: unknown): string[] | undefined {
  // Clients send an empty text for a field that was left alone.
  if (value === undefined || value === null || value === '') return [];
  const labels = new Set(choices.map(({ label }) => label));
  const given: unknown[] = multiple && Array.isArray(value) ? value : [value];
  if (given.length > labels.size) return undefined;
  const chosen = given.flatMap((one) => (typeof one === 'string' && labels.has(one) ? [one] : []));
  if (chosen.length !== given.length) return undefined;
  return multiple && chosen.length === 0 ? ['(none of the choices)'] : [...new Set(chosen)];
}

function readWords(value: unknown, besideChoice: boolean): string[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (text === '') return [];
  const words = text.length <= longestOwnWords ? text : `${sliceWhole(text, longestOwnWords)}… (cut: ${text.length} characters in all)`;
  return [besideChoice ? `in their own words: ${words}` : words];
}

function member(content: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(content, name) ? content[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
