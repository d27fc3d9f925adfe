/**
 * The tools of one session: those of the thread, cut down to what the client named, and `final_answer` where the session
 * must answer in a given form. A tool that was not named is as unknown as one that does not exist.
 */
import { createHash } from 'node:crypto';
import type { SessionOptions } from '../../shared/session-options.ts';
import type { ToolSchema } from '../model/model-adapter.ts';
import { FinalAnswer, finalAnswerName } from '../tools/final-answer.ts';
import type { AnyTool } from '../tools/tool.ts';
import type { ParsedArguments, ToolSet } from './agent-context.ts';

/** The session's tools; those that are already a session's are given back as they are. */
export function sessionTools(all: ToolSet, options: Pick<SessionOptions, 'tools' | 'outputSchema'>): SessionTools {
  return all instanceof SessionTools ? all : new SessionTools(all, options);
}

export class SessionTools implements ToolSet {
  /** There when the session has an output schema. */
  readonly finalAnswer: FinalAnswer | undefined;
  readonly #all: ToolSet;
  readonly #named: ReadonlySet<string> | undefined;
  /** Made once: what a provider caches must not change, and the text of it is long. */
  readonly #schemas: readonly ToolSchema[];

  constructor(all: ToolSet, { tools, outputSchema }: Pick<SessionOptions, 'tools' | 'outputSchema'>) {
    this.#all = all;
    this.#named = tools === undefined ? undefined : new Set(tools);
    this.finalAnswer = outputSchema === undefined ? undefined : new FinalAnswer(outputSchema);
    this.#schemas = this.#unchanged ? all.schemas() : this.#ownSchemas();
  }

  get(name: string): AnyTool | undefined {
    if (this.finalAnswer !== undefined && name === finalAnswerName) return this.finalAnswer.tool;
    return this.#has(name) ? this.#all.get(name) : undefined;
  }

  /** Sorted by name, as those of the thread are. */
  schemas(): readonly ToolSchema[] {
    return this.#schemas;
  }

  hash(): string {
    if (this.#unchanged) return this.#all.hash();
    return createHash('sha256').update(JSON.stringify(this.#schemas)).digest('hex').slice(0, 16);
  }

  parseArguments(name: string, raw: string): ParsedArguments {
    if (this.finalAnswer !== undefined && name === finalAnswerName) return this.finalAnswer.parseArguments(raw);
    if (this.#has(name)) return this.#all.parseArguments(name, raw);
    return { ok: false, code: 'UNKNOWN_TOOL', text: `There is no tool named ${JSON.stringify(name.slice(0, 80))}. Nothing was executed.` };
  }

  get #unchanged(): boolean {
    return this.#named === undefined && this.finalAnswer === undefined;
  }

  #has(name: string): boolean {
    return this.#named?.has(name) ?? true;
  }

  #ownSchemas(): ToolSchema[] {
    const kept = this.#all.schemas().filter(({ name }) => this.#has(name) && (this.finalAnswer === undefined || name !== finalAnswerName));
    if (this.finalAnswer === undefined) return kept;
    const { name, description, parameters } = this.finalAnswer.tool;
    return [...kept, { name, description, parameters }].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}
