/**
 * The names of the tools, for whoever must know them without the tools themselves: main checks what a client names. A test
 * holds them to the registry.
 */

export const toolNames = ['bash', 'bash_output', 'bash_kill', 'read', 'write', 'edit', 'glob', 'grep', 'todo_write'] as const;

/** There only where a plan can be put to a person. */
export const planToolName = 'exit_plan_mode';

/** There only where the client shows forms to a person. */
export const askUserToolName = 'ask_user';

/** There only where there is an agent to delegate to. */
export const subagentToolNames = ['subagent', 'subagent_output', 'subagent_kill'] as const;
