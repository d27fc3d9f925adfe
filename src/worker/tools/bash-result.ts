/**
 * What a finished command says to the model, and what its terminal card needs. Pure.
 *
 * Exit code, signal, time limit and truncation are separate facts and are said separately; the card gets them as values,
 * never read back out of the text.
 */
import type { CapturedOutput, RunResult, SpawnFailure } from '../../shared/broker-protocol.ts';
import { containedMarks, controlMarks, lackOfNetworkMark } from './contained-marks.ts';
import type { ToolOutcome } from './tool.ts';

/** Bytes of each stream the model and the card get to see. */
export const keptBytesPerStream = 64_000;
/** Bytes of output in the card. */
const cardBytes = 64 * 1024;

export interface CommandFacts {
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly spillMaxBytes: number;
  /** The call asked for the network. */
  readonly askedForNetwork?: boolean;
}

export function commandOutcome(result: RunResult, facts: CommandFacts): ToolOutcome {
  if (result.spawnError !== undefined) {
    return notStarted({ ...result, spawnError: result.spawnError });
  }
  // Bytes that are no UTF-8 grow threefold when decoded, so the text is bounded again.
  const stdout = clip(result.stdout.text, keptBytesPerStream * 1.25);
  const stderr = clip(result.stderr.text, keptBytesPerStream * 1.25);
  const limits = limitMarks(result, facts);
  const marks = [...limits, ...endMarks(result), ...containedMarks(result)];
  const output = [stdout, stderr === '' ? '' : `[stderr]\n${stderr}`].filter((part) => part !== '').map(withoutLastNewline);
  const text = [...(output.length === 0 ? ['(no output)'] : output), ...marks].join('\n');
  const meta = {
    exitCode: result.exitCode,
    signal: result.signal,
    timedOut: result.timedOut,
    ...(result.contained === true ? { sandbox: 'bubblewrap' } : {}),
    ...(result.networkOff === undefined ? {} : { network: 'off' }),
    // As it came, the two streams together: what a person would have seen.
    output: clip(result.shown?.text ?? stdout + stderr, cardBytes),
    ...(limits.length === 0 ? {} : { notes: limits }),
    cwd: facts.cwd,
  };
  return result.cancelled ? { text, isError: true, code: 'ABORTED', meta } : { text, isError: false, meta };
}

/** The system refused it, or there is no sandbox where there must be one. */
export function notStarted({ spawnError, spawnCode }: SpawnFailure): ToolOutcome {
  return { text: `The command could not be started: ${spawnError}`, isError: true, code: spawnCode ?? 'SPAWN_FAILED' };
}

/** What the card has no values for: it shows these as lines behind its output. */
function limitMarks(result: RunResult, { timeoutMs, spillMaxBytes, askedForNetwork = false }: CommandFacts): string[] {
  const marks = [
    truncationMark('stdout', result.stdout, spillMaxBytes),
    truncationMark('stderr', result.stderr, spillMaxBytes),
    result.cancelled ? '[aborted: the command was ended before it finished]' : undefined,
    result.timedOut ? `[timed out after ${timeoutMs} ms]` : undefined,
    lackOfNetworkMark(result, askedForNetwork),
    ...controlMarks(result),
  ];
  return marks.filter((mark) => mark !== undefined);
}

function endMarks({ signal, exitCode }: RunResult): string[] {
  if (signal !== null) return [`[killed by signal ${signal}]`];
  return exitCode === null || exitCode === 0 ? [] : [`[exit code: ${exitCode}]`];
}

function truncationMark(name: string, output: CapturedOutput, spillMaxBytes: number): string | undefined {
  if (!output.truncated) return undefined;
  const size = `[${name} truncated: ${output.totalBytes} bytes in all`;
  if (output.spillPath === undefined) return `${size}]`;
  const part = output.totalBytes > spillMaxBytes ? `the first ${spillMaxBytes} bytes are` : 'all of it is';
  return `${size}; ${part} in ${output.spillPath}]`;
}

function withoutLastNewline(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

/** Head and tail of a text that is longer than `maxBytes` of UTF-8. The result may be a mark longer, never more. */
export function clip(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  const half = Math.floor((maxBytes - 64) / 2);
  let headEnd = half;
  while (isContinuation(bytes[headEnd])) headEnd -= 1;
  let tailStart = bytes.length - half;
  while (isContinuation(bytes[tailStart])) tailStart += 1;
  const mark = `\n[... ${tailStart - headEnd} bytes left out ...]\n`;
  return `${bytes.toString('utf8', 0, headEnd)}${mark}${bytes.toString('utf8', tailStart)}`;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
}
