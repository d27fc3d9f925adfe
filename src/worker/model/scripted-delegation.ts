/**
 * Delegating in the command language of the scripted model: `delegate`, `collect` and `stop`, and the ids that only the
 * tools' results know.
 */
import type { ToolSchema, ModelMessage } from './model-adapter.ts';
import type { ScriptedCommand } from './scripted-command.ts';

const longestWaitMs = 600_000;
const defaultWaitMs = 60_000;

/** `delegate [&] AGENT PROMPT`; the text of a heredoc takes the place of the prompt. */
export function parseDelegate(rest: string, heredoc: string | undefined): ScriptedCommand | undefined {
  const match = /^(&\s+)?([a-z][a-z0-9-]*)(?:\s+(.*))?$/s.exec(rest);
  const prompt = (heredoc ?? match?.[3] ?? '').trim();
  if (match?.[2] === undefined || prompt === '' || (heredoc !== undefined && match[3] !== undefined)) return undefined;
  const words = prompt.split(/\s+/).slice(0, 4).join(' ');
  const description = `Delegate ${words.length > 60 ? `${words.slice(0, 60)}…` : words}`;
  const background = match[1] === undefined ? {} : { run_in_background: true };
  return { kind: 'tool', name: 'subagent', args: { description, prompt, agent: match[2], ...background }, parallel: false };
}

/** `collect [ID] [MS]`: without an id the newest job, without a time a minute. */
export function parseCollect(rest: string): ScriptedCommand | undefined {
  const match = /^(?:([a-z]+-\d+|last)(?:\s+|$))?(\d+)?$/.exec(rest);
  const waitMs = match?.[2] === undefined ? defaultWaitMs : Number(match[2]);
  if (match === null || waitMs > longestWaitMs) return undefined;
  return withJob('subagent_output', match[1], { wait_ms: waitMs });
}

/** `stop [ID]`. */
export function parseStop(rest: string): ScriptedCommand | undefined {
  return /^(?:[a-z]+-\d+|last)?$/.test(rest) ? withJob('subagent_kill', rest === '' ? undefined : rest, {}) : undefined;
}

function withJob(
  name: 'subagent_output' | 'subagent_kill',
  id: string | undefined,
  args: Readonly<Record<string, unknown>>,
): ScriptedCommand {
  if (id === undefined || id === 'last') return { kind: 'last-task', name, args, parallel: false };
  return { kind: 'tool', name, args: { job_id: id, ...args }, parallel: false };
}

/** The id in the result of the newest background job. */
export function lastJobId(messages: readonly ModelMessage[]): string | undefined {
  const started = /^started background subagent job (\S+)$/;
  const result = messages.findLast((message) => message.role === 'tool' && started.test(message.text));
  return result === undefined ? undefined : started.exec(result.text)?.[1];
}

/** The agent is named only where the tool lets one choose. */
export function fittingArgs(
  name: string,
  args: Readonly<Record<string, unknown>>,
  tools: readonly ToolSchema[],
): Readonly<Record<string, unknown>> {
  const schema = name === 'subagent' ? tools.find((tool) => tool.name === name) : undefined;
  if (schema === undefined || JSON.stringify(schema.parameters).includes('"agent":{')) return args;
  const { agent: _only, ...rest } = args;
  return rest;
}
