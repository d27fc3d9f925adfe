/**
 * From the questions of a call to the form that a client shows (`elicitation/create`). Pure.
 *
 * A form has fields of plain types only. A question with choices is one field, and one more for the person's own words.
 */
import type { ElicitationPropertySchema, ElicitationSchema } from '@agentclientprotocol/sdk';
import { sliceWhole, titleLine } from '../display/title-line.ts';

export interface AskedChoice {
  readonly label: string;
  readonly description?: string;
}

export interface AskedQuestion {
  readonly question: string;
  readonly choices?: readonly AskedChoice[];
  /** Any number of the choices. */
  readonly multiple?: boolean;
  /** `false` leaves the choices alone. */
  readonly free_text?: boolean;
}

/** What a client is asked, beside whom and about which call. */
export interface AskForm {
  readonly message: string;
  readonly requestedSchema: ElicitationSchema;
}

/** A person's own words beyond this are cut. In UTF-16 units. */
export const longestOwnWords = 4000;

/** Names of a question's fields. `own` is missing where only a choice is wanted. */
export interface QuestionFields {
  readonly choice: string | undefined;
  readonly own: string | undefined;
}

/** @param index from 0 */
export function fieldsOf({ choices = [], free_text: freeText = true }: AskedQuestion, index: number): QuestionFields {
  const name = `q${index + 1}`;
  if (choices.length === 0) return { choice: undefined, own: name };
  return { choice: name, own: freeText ? `${name}_other` : undefined };
}

export function askForm(questions: readonly AskedQuestion[]): AskForm {
  const only = questions.length === 1 ? questions[0] : undefined;
  const properties: Record<string, ElicitationPropertySchema> = {};
  const required: string[] = [];
  for (const [index, question] of questions.entries()) {
    const fields = fieldsOf(question, index);
    // The message of a single question says it already.
    const heading = only === undefined ? headingOf(question, index) : { title: 'Answer' };
    if (fields.choice !== undefined) properties[fields.choice] = choiceField(question, heading);
    if (fields.own !== undefined) properties[fields.own] = ownField(fields, heading);
    if (fields.choice === undefined || fields.own === undefined) required.push(fields.choice ?? fields.own ?? '');
  }
  return {
    message: only === undefined ? `The agent has ${questions.length} questions.` : only.question,
    requestedSchema: { type: 'object', properties, required },
  };
}

interface Heading {
  readonly title: string;
  readonly description?: string;
}

function headingOf({ question }: AskedQuestion, index: number): Heading {
  const title = titleLine(question, `Question ${index + 1}`);
  return title === question ? { title } : { title, description: question };
}

function choiceField({ choices = [], multiple = false }: AskedQuestion, heading: Heading): ElicitationPropertySchema {
  const options = choices.map(({ label, description }) => ({
    const: label,
    title: titleLine(label, label),
    ...(description === undefined ? {} : { description }),
  }));
  return multiple ? { type: 'array', ...heading, items: { anyOf: options } } : { type: 'string', ...heading, oneOf: options };
}

function ownField({ choice }: QuestionFields, heading: Heading): ElicitationPropertySchema {
  if (choice === undefined) return { type: 'string', ...heading, minLength: 1, maxLength: longestOwnWords };
  const { title } = heading;
  const about = title === 'Answer' ? '' : ` (${sliceWhole(title, 60)})`;
  return {
    type: 'string',
    title: `Something else${about}`,
    description: 'Your own words, in place of a choice or beside it.',
    maxLength: longestOwnWords,
  };
}
