/**
 * The tools of a session by name, and their schemas in an order that never changes, so that a provider's prompt cache holds.
 */
import { createHash } from 'node:crypto';
import type { ToolSchema } from '../model/model-adapter.ts';
import { ArgumentChecker } from './arguments.ts';
import type { ParsedArguments } from './arguments.ts';
import type { AnyTool } from './tool.ts';

const maxNameShown = 80;

interface Entry {
  readonly tool: AnyTool;
  readonly checker: ArgumentChecker;
}

export class ToolRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #schemas: readonly ToolSchema[];
  #hash: string | undefined;

  /** @throws Error when two tools have one name */
  constructor(tools: readonly AnyTool[]) {
    for (const tool of tools) {
      if (this.#entries.has(tool.name)) {
        throw new Error(`two tools are named ${tool.name}`);
      }
      this.#entries.set(tool.name, { tool, checker: new ArgumentChecker(tool.name, tool.parameters) });
    }
    this.#schemas = [...this.#entries.values()]
      .map(({ tool }) => ({ name: tool.name, description: tool.description, parameters: tool.parameters }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get(name: string): AnyTool | undefined {
    return this.#entries.get(name)?.tool;
  }

  /** What the model is told, sorted by name. */
  schemas(): readonly ToolSchema[] {
    return this.#schemas;
  }

  /** Sixteen hex digits that change when anything the model is told changes. */
  hash(): string {
    this.#hash ??= createHash('sha256').update(JSON.stringify(this.#schemas)).digest('hex').slice(0, 16);
    return this.#hash;
  }

  /**
   * The arguments of a call, parsed whole and checked. Never throws.
   *
   * @param rawArguments JSON text as the model made it; blank means no arguments
   */
  parseArguments(name: string, rawArguments: string): ParsedArguments {
    const entry = this.#entries.get(name);
    if (entry === undefined) {
      const known = this.#schemas.map((schema) => schema.name).join(', ');
      const shown = JSON.stringify(name.slice(0, maxNameShown));
      return { ok: false, code: 'UNKNOWN_TOOL', text: `There is no tool ${shown}. Nothing was executed. The tools are: ${known}.` };
    }
    return entry.checker.parse(rawArguments);
  }
}
