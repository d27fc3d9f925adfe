/**
 * Which script a conversation asks for, and how far it has come. Pure: the history is the only memory, so that a revived session
 * goes on where it was.
 */
import type { ModelMessage } from './model-adapter.ts';
import { parseCommand, type ScriptedCommand } from './scripted-command.ts';

/** What one model call does: some narration, then at most one group of parallel calls. */
export type ScriptStep = readonly ScriptedCommand[];

export interface ScriptPlan {
  readonly steps: readonly ScriptStep[];
  /** How many steps the history shows as done. At `steps.length` only the summary is left. */
  readonly position: number;
  /** Messages since the script was given. */
  readonly since: readonly ModelMessage[];
}

function joinHeredocs(text: string): { readonly line: string; readonly heredoc: string | undefined }[] {
  const lines = text.split(/\r?\n/);
  const out: { line: string; heredoc: string | undefined }[] = [];
  for (let i = 0; i < lines.length; i += 1) {
    const line = (lines[i] ?? '').trim();
    const match = /^(.*?)\s*<<\s*'?(\w+)'?$/.exec(line);
    const end = match === null ? -1 : lines.findIndex((candidate, at) => at > i && candidate.trim() === match[2]);
    if (match?.[1] !== undefined && end > i) {
      const body = lines.slice(i + 1, end);
      out.push({ line: match[1], heredoc: body.length === 0 ? '' : `${body.join('\n')}\n` });
      i = end;
    } else if (line !== '') out.push({ line, heredoc: undefined });
  }
  return out;
}

/** Lines in brackets, and Markdown links, are references and notices that the server wrote, not commands. */
function isBracketed(line: string): boolean {
  return /^[[<].*[\]>)]$/.test(line);
}

/** Reads the commands of a text, line by line. Blank lines and bracketed lines say nothing. */
export function parseScript(text: string): ScriptedCommand[] {
  return joinHeredocs(text)
    .filter(({ line }) => !isBracketed(line))
    .map(({ line, heredoc }) => parseCommand(line, heredoc));
}

function endsStep(command: ScriptedCommand): boolean {
  return command.kind === 'tool' || command.kind === 'last-task';
}

/** Narration belongs to the step of the tool call below it: an answer without a call would end the turn. */
export function groupSteps(commands: readonly ScriptedCommand[]): ScriptStep[] {
  const steps: ScriptedCommand[][] = [];
  let open: ScriptedCommand[] = [];
  for (const command of commands) {
    const beside = (command.kind === 'tool' || command.kind === 'last-task') && command.parallel && open.length === 0;
    const last = steps.at(-1);
    if (beside && last !== undefined) last.push(command);
    else {
      open.push(command);
      if (endsStep(command)) {
        steps.push(open);
        open = [];
      }
    }
  }
  if (open.length > 0) steps.push(open);
  return steps;
}

function isScript(commands: readonly ScriptedCommand[]): boolean {
  return commands.some((command) => command.kind !== 'unknown');
}

/**
 * Finds the script: the newest message with commands in the newest run of user messages since the last completed answer. What stands above it
 * there is a summary of earlier work, or a prompt that was cancelled before it was answered. A run that only holds bracketed lines, such as a notice that a background command
 * ended, does not replace the script above it.
 *
 * @returns `undefined` when there is nothing but text that is no command
 */
export function planScript(messages: readonly ModelMessage[]): ScriptPlan | undefined {
  let position = 0;
  let run: ScriptedCommand[][] = [];
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (message?.role === 'user') run.unshift(parseScript(message.text));
    if (message?.role === 'user' && messages[i - 1]?.role !== 'user') {
      const commands = run.findLast(isScript) ?? [];
      if (commands.length > 0) return { steps: groupSteps(commands), position, since: messages.slice(i) };
      if (run.flat().length > 0) return undefined;
      run = [];
    }
    if (message?.role === 'assistant') {
      if (message.toolCalls.length === 0) return undefined;
      position += 1;
    }
  }
  return undefined;
}
