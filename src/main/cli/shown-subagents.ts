/** The agents to delegate to, as `dsh-acp config` prints them. Values of their variables are never printed. */
import type { SubagentProvider } from '../../shared/subagent-protocol.ts';

/** In plain data, under the keys of the file; keys that nobody set and that have no default are left out. */
export function shownSubagents(providers: readonly SubagentProvider[]): object[] {
  return providers.map((provider) => ({
    name: provider.name,
    description: provider.description,
    ...(provider.command === undefined ? {} : processKeys(provider)),
    cwd: provider.cwd,
    permission: provider.permission,
    start_timeout_ms: provider.startTimeoutMs,
    idle_timeout_ms: provider.idleTimeoutMs,
    max_running: provider.maxRunning,
    max_depth: provider.maxDepth,
    persona: provider.persona,
    tools: provider.tools,
    output_schema: provider.outputSchema,
  }));
}

function processKeys(provider: SubagentProvider): object {
  return {
    command: provider.command,
    args: provider.args,
    env: Object.fromEntries(Object.keys(provider.env).map((name) => [name, '(set, hidden)'])),
    env_mode: provider.envMode,
    env_allow: provider.envAllow,
    dispose_eof_grace_ms: provider.disposeEofGraceMs,
    dispose_grace_ms: provider.disposeGraceMs,
    pool_size: provider.poolSize,
    pool_idle_ms: provider.poolIdleMs,
  };
}

/** A block per agent, in the form of the file. */
export function subagentsAsText(providers: readonly SubagentProvider[]): string {
  if (providers.length === 0) return '# no agents to delegate to\n';
  const blocks = shownSubagents(providers).map((keys) => {
    const lines = Object.entries(keys).map(([key, value]) => (value === undefined ? '' : `${key} = ${JSON.stringify(value)}\n`));
    return `[[subagents]]\n${lines.join('')}`;
  });
  return blocks.join('\n');
}
