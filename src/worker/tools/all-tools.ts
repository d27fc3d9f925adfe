/**
 * The tools every session has.
 */
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';
import { askUserTool } from './ask-user.ts';
import { bashTool } from './bash.ts';
import { bashKillTool } from './bash-kill.ts';
import { bashOutputTool } from './bash-output.ts';
import { editTool } from './edit.ts';
import { exitPlanModeTool } from './exit-plan-mode.ts';
import { globTool } from './glob.ts';
import { grepTool } from './grep.ts';
import { readTool } from './read.ts';
import { ToolRegistry } from './registry.ts';
import { subagentTool } from './subagent.ts';
import { subagentKillTool } from './subagent-kill.ts';
import { subagentOutputTool } from './subagent-output.ts';
import type { AnyTool } from './tool.ts';
import { todoWriteTool } from './todo-write.ts';
import { writeTool } from './write.ts';

const registries = new Map<string, ToolRegistry>();

/** What some sessions have beside the tools that all have. */
export interface ExtraTools {
  /** The way out of plan mode. */
  readonly plan?: boolean;
  /** Questions to the person. */
  readonly askUser?: boolean;
}

export const everyExtra: ExtraTools = { plan: true, askUser: true };

/**
 * The registry for sessions that may delegate to these agents. One serves all such sessions of a thread: tools hold no state.
 */
export function toolRegistryFor(subagents: readonly SubagentProvider[], extras: ExtraTools = {}): ToolRegistry {
  const key = JSON.stringify([extras, ...subagents.map(({ name, description }) => [name, description])]);
  let registry = registries.get(key);
  if (registry === undefined) {
    registry = createToolRegistry(subagents, extras);
    registries.set(key, registry);
  }
  return registry;
}

/** Makes a registry; without an agent to delegate to it has no tool for that. */
export function createToolRegistry(
  subagents: readonly SubagentProvider[] = [],
  { plan = false, askUser = false }: ExtraTools = {},
): ToolRegistry {
  const tools: readonly AnyTool[] = [
    bashTool,
    bashOutputTool,
    bashKillTool,
    readTool,
    writeTool,
    editTool,
    globTool,
    grepTool,
    todoWriteTool,
    ...(plan ? [exitPlanModeTool] : []),
    ...(askUser ? [askUserTool] : []),
    ...(subagents.length === 0 ? [] : [subagentTool(subagents), subagentOutputTool, subagentKillTool]),
  ];
  return new ToolRegistry(tools);
}
