/**
 * What a finished run says to the model that delegated, in the words of its stop reason. Pure.
 *
 * A run that did not complete is an error and still hands over what came: a partial answer must neither be lost nor be
 * taken for a whole one.
 */
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import type { SubagentResult, SubagentStopReason } from '../../shared/subagent-protocol.ts';
import { clip } from '../tools/bash-result.ts';

/** Of the child's text; the middle of a longer one is left out. */
export const outputBytes = 128 * 1024;
const diagnosticBytes = 4_096;

/** The shape of a tool's outcome. */
export interface RunOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly code?: string;
  readonly meta: JsonObject;
}

const failures: Readonly<Record<Exclude<SubagentStopReason, 'completed'>, { readonly text: string; readonly code: string }>> = {
  aborted: { text: 'subagent run was cancelled', code: 'SUBAGENT_CANCELLED' },
  error: { text: 'subagent run failed', code: 'SUBAGENT_FAILED' },
  'max-tokens': { text: 'subagent run hit its token limit before finishing', code: 'SUBAGENT_MAX_TOKENS' },
  refusal: { text: 'subagent declined the task', code: 'SUBAGENT_REFUSED' },
};

/** How a run ended, as a verb for a notice: `background subagent job agent-1 (…) completed`. */
export const endedWords: Readonly<Record<SubagentStopReason, string>> = {
  completed: 'completed',
  aborted: 'was cancelled',
  error: 'failed',
  'max-tokens': 'hit its token limit before finishing',
  refusal: 'declined the task',
};

export function runOutcome(result: SubagentResult): RunOutcome {
  const output = clip(result.output, outputBytes);
  const meta = metaOf(result);
  if (result.stopReason === 'completed') return { text: output === '' ? emptyOutput(result) : output, isError: false, meta };
  const { text, code } = failures[result.stopReason];
  const diagnostic = result.diagnostic === undefined ? [] : [`Diagnostic: ${clipDiagnostic(result.diagnostic)}`];
  const partial = output === '' ? [] : [`Partial output before the run ended:\n${output}`];
  return { text: [text, ...diagnostic, ...partial].join('\n'), isError: true, code, meta };
}

/** What the log keeps of a background run's answer: enough that whoever reads it later reads the same. */
export function keptAnswer({ output, structured }: SubagentResult): { readonly output: string; readonly structured?: JsonValue } {
  return { output: clip(output, outputBytes), ...(structured === undefined ? {} : { structured }) };
}

/** At most {@link diagnosticBytes} of UTF-8, cut at a whole character. */
export function clipDiagnostic(text: string): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= diagnosticBytes) return text;
  let end = diagnosticBytes;
  while (((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end -= 1;
  return bytes.toString('utf8', 0, end);
}

function emptyOutput({ structured }: SubagentResult): string {
  return structured === undefined ? '(the subagent ended without any text)' : JSON.stringify(structured);
}

function metaOf({ stopReason, usage, durationMs, logPath, structured }: SubagentResult): JsonObject {
  return {
    stopReason,
    durationMs,
    ...(usage === undefined ? {} : { usage: { ...usage } }),
    ...(logPath === undefined ? {} : { logPath }),
    ...(structured === undefined ? {} : { structured }),
  };
}
