/**
 * The tools every session has.
 */
import { bashTool } from './bash.ts';
import { bashKillTool } from './bash-kill.ts';
import { bashOutputTool } from './bash-output.ts';
import { editTool } from './edit.ts';
import { globTool } from './glob.ts';
import { grepTool } from './grep.ts';
import { readTool } from './read.ts';
import { ToolRegistry } from './registry.ts';
import type { AnyTool } from './tool.ts';
import { todoWriteTool } from './todo-write.ts';
import { writeTool } from './write.ts';

/** One registry serves all sessions of a thread: tools hold no state. */
export function createToolRegistry(): ToolRegistry {
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
  ];
  return new ToolRegistry(tools);
}
