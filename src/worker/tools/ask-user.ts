/**
 * `ask_user`: puts questions to the person in the middle of a turn, as a form of the client. Offered only where the client has
 * forms: without them a question is an answer like any other, and ends the turn.
 */
import type { ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import { askUserToolName } from '../../shared/tool-names.ts';
import { titleLine } from '../display/title-line.ts';
import { askOutcome, notPut } from './ask-user-answer.ts';
import { type AskedQuestion, askForm } from './ask-user-form.ts';
import { aborted, failed } from './outcome.ts';
import type { Tool, ToolContext, ToolOutcome } from './tool.ts';

const mostQuestions = 4;
const mostChoices = 10;
const longestQuestion = 2000;
const longestLabel = 100;
const longestDescription = 300;

export interface AskUserArgs {
  readonly questions: readonly AskedQuestion[];
}

async function execute({ questions }: AskUserArgs, { person, callId, signal }: ToolContext): Promise<ToolOutcome> {
  if (signal.aborted) return aborted();
  const alike = questions.find(hasChoicesAlike);
  if (alike !== undefined) return failed('INVALID_ARGS', `Two choices of "${titleLine(alike.question)}" look the same. Nothing was asked.`);
  if (person === undefined) return notPut();
  return askOutcome(questions, await person.ask(callId, askForm(questions), signal));
}

/** As a person sees them. */
function hasChoicesAlike({ choices = [] }: AskedQuestion): boolean {
  return new Set(choices.map(({ label }) => titleLine(label).toLowerCase())).size < choices.length;
}

function presentCall({ questions }: AskUserArgs): ToolCallView {
  const [first, ...more] = questions;
  const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return {
    card: 'generic',
    title: `Ask: ${titleLine(first?.question ?? '')}${others}`,
    kind: 'other',
    // The questions are shown; a second copy would only double the frame.
    rawInput: {},
    content: questions.map(questionText),
  };
}

function questionText({ question, choices = [] }: AskedQuestion): string {
  const lines = choices.map(
    ({ label, description }) => `- ${titleLine(label)}${description === undefined ? '' : `: ${titleLine(description)}`}`,
  );
  return [question, ...lines].join('\n');
}

function presentResult({ questions }: AskUserArgs, outcome: ToolOutcome): ToolResultView {
  // An answer repeats its questions.
  const isAnswered = outcome.meta?.['answered'] === true;
  return { card: 'generic', content: isAnswered ? [outcome.text] : [...questions.map(questionText), outcome.text] };
}

export const askUserTool: Tool<AskUserArgs> = {
  name: askUserToolName,
  description: [
    'Puts questions to the user and waits for the answers. Use it when you cannot go on well without them: a choice between ways that ' +
      'differ for the user, or a fact that is nowhere to be found. Do not ask what you can find out or decide by yourself, and do not ' +
      'ask for permission to call a tool: that is asked for when you call it.',
    'The user may decline, or answer in their own words beside the choices or in place of them. Never ask for passwords or keys.',
  ].join('\n'),
  parameters: {
    type: 'object',
    properties: {
      questions: {
        type: 'array',
        minItems: 1,
        maxItems: mostQuestions,
        items: {
          type: 'object',
          properties: {
            question: { type: 'string', minLength: 1, maxLength: longestQuestion, description: 'One whole question.' },
            choices: {
              type: 'array',
              minItems: 2,
              maxItems: mostChoices,
              description: 'What the user may pick. Without choices they answer in their own words.',
              items: {
                type: 'object',
                properties: {
                  label: { type: 'string', minLength: 1, maxLength: longestLabel, description: 'One to five words.' },
                  description: { type: 'string', maxLength: longestDescription, description: 'What picking it means.' },
                },
                required: ['label'],
                additionalProperties: false,
              },
            },
            multiple: { type: 'boolean', description: 'Several choices may be picked.' },
            free_text: { type: 'boolean', description: 'False: only the choices, no words of their own. Default true.' },
          },
          required: ['question'],
          additionalProperties: false,
        },
      },
    },
    required: ['questions'],
    additionalProperties: false,
  },
  isParallelSafe: () => false,
  access: () => ({ kind: 'none' }),
  execute,
  presentCall,
  presentResult,
};
