/**
 * Events for programs: each as one JSON line, in order. The results file holds results whole; here long texts are cut, so that a
 * reader may keep up with any run.
 */
import type { JobResult } from '../job-result.ts';
import type { RunEvent, RunObserver } from '../run-event.ts';
import { type ViewStream, writerTo } from './view-stream.ts';
import { headOf, tailOf } from './visible-text.ts';

/** In characters, each. */
const longestText = 4096;

export class JsonView implements RunObserver {
  readonly #write: (text: string) => void;

  constructor(stream: ViewStream) {
    this.#write = writerTo(stream);
  }

  onEvent(event: RunEvent): void {
    const shown = event.type === 'job/end' ? { ...event, result: trimResult(event.result) } : event;
    this.#write(`${JSON.stringify(shown)}\n`);
  }
}

/** A result of which `trimmed` names the members that were cut or left out. */
export type TrimmedResult = JobResult & { readonly trimmed?: readonly string[] };

/**
 * Bounds every member of a result: `text` keeps its head, `check.output` and `setup.output` their tail, 4,096 characters each;
 * `patch`, `structured`, `meta` and `labels` are left out (`labels` empty) when they are longer than that as JSON.
 */
export function trimResult(result: JobResult): TrimmedResult {
  const trimmed: string[] = [];
  const fits = (name: 'patch' | 'structured' | 'meta' | 'labels'): boolean => {
    if (result[name] === undefined || JSON.stringify(result[name]).length <= longestText) return true;
    trimmed.push(name);
    return false;
  };
  const { patch, structured, meta, labels, ...rest } = result;
  const text = headOf(rest.text, longestText);
  if (text !== rest.text) trimmed.push('text');
  const shown: TrimmedResult = {
    ...rest,
    text,
    labels: fits('labels') ? labels : {},
    ...(patch !== undefined && fits('patch') ? { patch } : {}),
    ...(structured !== undefined && fits('structured') ? { structured } : {}),
    ...(meta !== undefined && fits('meta') ? { meta } : {}),
    ...withTail('check', result.check, trimmed),
    ...withTail('setup', result.setup, trimmed),
  };
  return trimmed.length === 0 ? shown : { ...shown, trimmed };
}

type Command = NonNullable<JobResult['check']>;

function withTail(name: 'check' | 'setup', command: Command | undefined, trimmed: string[]): { [K in 'check' | 'setup']?: Command } {
  if (command === undefined || command.output.length <= longestText) return {};
  trimmed.push(`${name}.output`);
  return { [name]: { ...command, output: tailOf(command.output, longestText) } };
}
