/**
 * The tools of one session: those of the thread, cut down to what the client named, and `final_answer` where the session
 * must answer in a given form. A tool that was not named is as unknown as one that does not exist.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { quoted } from '../../shared/quoted.ts';
import type { SessionOptions } from '../../shared/session-options.ts';
import type { ToolSchema } from '../model/model-adapter.ts';
import { FinalAnswer, finalAnswerName } from '../tools/final-answer.ts';
import type { AnyTool } from '../tools/tool.ts';
import type { ParsedArguments, ToolSet } from './agent-context.ts';

/** The session's tools; those that are already a session's are given back as they are. */
export function sessionTools(all: ToolSet, options: Pick<SessionOptions, 'tools' | 'outputSchema'>): SessionTools {
  return all instanceof SessionTools ? all : new SessionTools(all, options);
}

/** A tool that is there only for a time, with a check of its own. */
export interface LateTool {
  readonly tool: AnyTool;
  /** Never throws. */
  parseArguments(raw: string): ParsedArguments;
}

export class SessionTools implements ToolSet {
  /** There when the session has an output schema. */
  readonly finalAnswer: FinalAnswer | undefined;
  readonly #all: ToolSet;
  readonly #named: ReadonlySet<string> | undefined;
  /** Made once: what a provider caches must not change, and the text of it is long. */
  readonly #own: readonly ToolSchema[];
  readonly #late = new Map<string, LateTool>();
  #schemas: readonly ToolSchema[];
  #hash: string | undefined;
  #settling: ((signal: AbortSignal) => Promise<void> | undefined) | undefined;

  constructor(all: ToolSet, { tools, outputSchema }: Pick<SessionOptions, 'tools' | 'outputSchema'>) {
    this.#all = all;
    this.#named = tools === undefined ? undefined : new Set(tools);
    this.finalAnswer = outputSchema === undefined ? undefined : new FinalAnswer(outputSchema);
    this.#own = this.#unchanged ? all.schemas() : this.#ownSchemas();
    this.#schemas = this.#own;
  }

  get(name: string): AnyTool | undefined {
    if (this.finalAnswer !== undefined && name === finalAnswerName) return this.finalAnswer.tool;
    return this.#has(name) ? (this.#all.get(name) ?? this.#late.get(name)?.tool) : undefined;
  }

  /** Names of the tools that are always there. */
  get ownNames(): readonly string[] {
    return this.#own.map(({ name }) => name);
  }

  /**
   * The tools that there are for now, in place of those before; of these, too, only what the client named. They take effect
   * with the next request. None has the name of a tool that is always there.
   */
  setLate(tools: readonly LateTool[]): void {
    const kept = tools.filter(({ tool }) => this.#has(tool.name));
    this.#late.clear();
    for (const late of kept) this.#late.set(late.tool.name, late);
    const schemas = kept.map(({ tool: { name, description, parameters } }) => ({ name, description, parameters }));
    if (isDeepStrictEqual(schemas, this.#schemas.slice(this.#own.length))) return;
    this.#schemas = schemas.length === 0 ? this.#own : [...this.#own, ...schemas];
    this.#hash = undefined;
  }

  /** Whoever may bring tools says with this how long the first request is to wait for them. */
  waitWith(settling: (signal: AbortSignal) => Promise<void> | undefined): void {
    this.#settling = settling;
  }

  /** `undefined` when no tools are on their way, or they have been waited for. The promise never rejects. */
  settling(signal: AbortSignal): Promise<void> | undefined {
    return this.#settling?.(signal);
  }

  /** Those that are always there, sorted by name, then those that come and go: a provider's cache holds for the former. */
  schemas(): readonly ToolSchema[] {
    return this.#schemas;
  }

  hash(): string {
    if (this.#unchanged && this.#schemas === this.#own) return this.#all.hash();
    this.#hash ??= createHash('sha256').update(JSON.stringify(this.#schemas)).digest('hex').slice(0, 16);
    return this.#hash;
  }

  parseArguments(name: string, raw: string): ParsedArguments {
    if (this.finalAnswer !== undefined && name === finalAnswerName) return this.finalAnswer.parseArguments(raw);
    const late = this.#late.get(name);
    if (late !== undefined) return late.parseArguments(raw);
    if (this.#has(name)) return this.#all.parseArguments(name, raw);
    return { ok: false, code: 'UNKNOWN_TOOL', text: `There is no tool named ${quoted(name.slice(0, 80))}. Nothing was executed.` };
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
