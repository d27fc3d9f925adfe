/**
 * A tool of an MCP server as a tool of the session. Its body is a call through the broker; what its server says of it is
 * shown and never believed.
 */
import type { JsonObject } from '../../shared/errors.ts';
import type { McpApi, McpToolInfo } from '../../shared/mcp-protocol.ts';
import type { ParsedArguments } from '../agent/agent-context.ts';
import type { LateTool } from '../agent/session-tools.ts';
import { ArgumentChecker } from '../tools/arguments.ts';
import { failed } from '../tools/outcome.ts';
import type { AnyTool, ToolContext, ToolOutcome } from '../tools/tool.ts';
import { looseSchema } from './loose-schema.ts';
import { kindOf, mcpPresenter } from './mcp-presenter.ts';

export interface McpToolParts {
  /** The model's name for it. */
  readonly name: string;
  /** As the client called it. */
  readonly server: string;
  readonly info: McpToolInfo;
  readonly api: Pick<McpApi, 'callMcpTool' | 'cancelMcpCall'>;
}

export class McpTool implements LateTool {
  readonly tool: AnyTool;
  readonly #parts: McpToolParts;
  #checker: ArgumentChecker | undefined;

  constructor(parts: McpToolParts) {
    this.#parts = parts;
    const { name, server, info } = parts;
    const kind = kindOf(info.hints);
    this.tool = {
      name,
      description: info.description === '' ? `The tool ${info.name} of the MCP server ${server}.` : info.description,
      parameters: info.parameters,
      // A hint is enough for that: side by side or one by one, the server gets the same calls.
      isParallelSafe: () => info.hints.readOnly === true,
      access: () => ({ kind: 'mcp', server, tool: info.name, print: info.print }),
      execute: (args, context) => this.#call(args as JsonObject, context),
      ...mcpPresenter({ server, tool: info.name, kind }),
    };
  }

  /** Never throws. */
  parseArguments(raw: string): ParsedArguments {
    const { name, info } = this.#parts;
    this.#checker ??= new ArgumentChecker(name, looseSchema(info.parameters));
    try {
      const parsed = this.#checker.parse(raw);
      if (!parsed.ok || isObject(parsed.args)) return parsed;
    } catch {
      // The checker met something in the schema that it cannot work with.
      return {
        ok: false,
        code: 'INVALID_ARGS',
        text: `The arguments of ${name} cannot be checked: the schema that its server gives is not usable.`,
      };
    }
    return { ok: false, code: 'INVALID_ARGS', text: `The arguments of ${name} must be an object. Nothing was executed.` };
  }

  async #call(args: JsonObject, { signal, sessionId: owner, callId }: ToolContext): Promise<ToolOutcome> {
    if (signal.aborted) return failed('ABORTED', '[aborted: the call was not made]');
    const { server, info, api } = this.#parts;
    const cancel = (): void => void api.cancelMcpCall(owner, callId).catch(() => undefined);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const result = await api.callMcpTool({ owner, callId, server, tool: info.name, args });
      if (result.kind === 'failed') return failed(result.code, result.text);
      const { text, isError } = result;
      return isError ? { text, isError, code: 'MCP_TOOL_ERROR' } : { text, isError };
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
