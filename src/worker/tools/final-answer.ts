/**
 * `final_answer`: the one way to end a turn of a session that must answer in a given form. The call is the answer: it
 * touches nothing, so it needs no permission and is no tool call to a budget.
 */
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import type { ToolCallView, ToolResultView } from '../../shared/render-intents.ts';
import { ArgumentChecker, type ParsedArguments } from './arguments.ts';
import { failureView, succeeded } from './outcome.ts';
import type { AnyTool } from './tool.ts';

export const finalAnswerName = 'final_answer';

/** The answer goes to the client in one frame, and several clients refuse one that is nested deeper than 128 levels. */
const deepest = 100;

export class FinalAnswer {
  readonly tool: AnyTool;
  /** Arguments are objects, so any other kind of answer stands in a member of one. */
  readonly #wrapped: boolean;
  readonly #checker: ArgumentChecker;

  /** @param outputSchema JSON Schema (draft 2020-12) of the answer */
  constructor(outputSchema: JsonObject) {
    this.#wrapped = outputSchema['type'] !== 'object';
    const parameters = this.#wrapped ? wrapped(outputSchema) : outputSchema;
    this.tool = { ...body, parameters };
    this.#checker = new ArgumentChecker(finalAnswerName, parameters);
  }

  /** Parses and checks the arguments of a call. Never throws. */
  parseArguments(raw: string): ParsedArguments {
    try {
      const parsed = this.#checker.parse(raw);
      return parsed.ok && isDeeper(parsed.args, deepest) ? tooDeep : parsed;
    } catch {
      // A reference that leads nowhere shows only when a value is held against it.
      const text = `The arguments of ${finalAnswerName} cannot be checked: the schema that the client gave is not usable.`;
      return { ok: false, code: 'INVALID_ARGS', text };
    }
  }

  /** The answer itself, from checked arguments. */
  valueOf(args: unknown): JsonValue {
    // Arguments come from JSON.parse, so they are JSON values.
    return this.#wrapped ? (args as { readonly answer: JsonValue }).answer : (args as JsonValue);
  }
}

const tooDeep: ParsedArguments = {
  ok: false,
  code: 'INVALID_ARGS',
  text: `The arguments of ${finalAnswerName} are nested deeper than ${deepest} levels. The answer was not taken: give a flatter one.`,
};

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

function wrapped(outputSchema: JsonObject): object {
  // References of a schema with an id of its own go by that.
  const answer = outputSchema['$id'] === undefined ? moved(outputSchema) : outputSchema;
  return { type: 'object', properties: { answer }, required: ['answer'], additionalProperties: false };
}

/** The schema with references to its root that still lead there when it stands inside another one. */
function moved(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(moved);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]): [string, JsonValue] => {
    const isReference = key === '$ref' && typeof member === 'string' && /^#(\/|$)/.test(member);
    return [key, isReference ? `#/properties/answer${member.slice(1)}` : moved(member)];
  });
  return Object.fromEntries(entries);
}

const body: Omit<AnyTool, 'parameters'> = {
  name: finalAnswerName,
  description:
    'Gives the final answer and ends your work on this request. Call it once, when everything else is done; the arguments are the answer. ' +
    'When they do not match the schema you are told why: correct them and call again.',
  isParallelSafe: () => true,
  access: () => ({ kind: 'none' }),
  execute: async () => succeeded('The answer was taken.'),
  presentCall: (args): ToolCallView => ({ card: 'generic', title: 'Final answer', kind: 'other', rawInput: args as JsonValue }),
  presentResult: (_args, outcome): ToolResultView =>
    outcome.isError ? failureView(outcome) : { card: 'generic', content: [outcome.text] },
};
