/**
 * The background runs of a session as its model knows them: by id, running or ended, with the notice that says so.
 *
 * Works on live runs and on what a log tells of earlier ones alike.
 */
import type { EventData, LogEvent } from '../../shared/events.ts';
import type { SubagentResult } from '../../shared/subagent-protocol.ts';
import { endedWords } from './run-outcome.ts';
import { jobIdOf, type SubagentRun } from './subagent-run.ts';

/** Ended runs whose result can still be read; the oldest go first. */
const mostEnded = 20;

export type BackgroundJob =
  | { readonly state: 'running'; readonly description: string; readonly run: SubagentRun }
  | { readonly state: 'ended'; readonly description: string; readonly result: SubagentResult };

type Start = EventData['subagent/start'];
type End = EventData['subagent/end'];

export class BackgroundJobs {
  readonly #notice: (text: string) => void;
  readonly #running = new Map<string, SubagentRun>();
  readonly #ended = new Map<string, { readonly description: string; readonly result: SubagentResult }>();
  /** Runs of the stored log without an end, foreground ones among them. */
  readonly #open = new Map<string, Start>();
  /** Notices that the stored log has not told the model, by job. */
  readonly #untold = new Map<string, string>();
  /** Ended by the model itself. */
  readonly #killed = new Set<string>();
  #closed = false;

  constructor(notice: (text: string) => void) {
    this.#notice = notice;
  }

  observe(event: LogEvent): void {
    if (event.type === 'subagent/start') this.#open.set(event.data.runId, event.data);
    else if (event.type === 'subagent/end') this.markEnded(event.data);
    else if (event.type === 'user/message' && event.data.source === 'notice') {
      this.#markTold(event.data.content.map((block) => (block.type === 'text' ? block.text : '')));
    }
  }

  /** Runs that the stored log began and did not end. */
  open(): Start[] {
    return [...this.#open.values()];
  }

  /** The end of a run of the stored log. */
  markEnded(end: End): void {
    const start = this.#open.get(end.runId);
    this.#open.delete(end.runId);
    if (start?.background !== true) return;
    const description = start.description ?? 'no description';
    const jobId = jobIdOf(end.runId);
    this.#remember(jobId, description, { ...end, output: end.output ?? '' });
    // Who ended the run knows that it ended.
    if (end.stopReason !== 'aborted') this.#untold.set(jobId, noticeOf(jobId, description, end.stopReason));
  }

  /** Tells again what the model was not told before the session left its thread. */
  repeatNotices(): void {
    for (const text of this.#untold.values()) this.#notice(text);
    this.#untold.clear();
  }

  /** Takes in a run that has just started. */
  add(run: SubagentRun): void {
    const { jobId, description } = run;
    this.#running.set(jobId, run);
    void run.result.then((result) => {
      this.#running.delete(jobId);
      this.#remember(jobId, description, result);
      const killed = this.#killed.delete(jobId);
      if (!this.#closed && !killed) this.#notice(noticeOf(jobId, description, result.stopReason));
    });
  }

  get(id: string): BackgroundJob | undefined {
    const run = this.#running.get(id);
    if (run?.ended !== undefined) return { state: 'ended', description: run.description, result: run.ended };
    if (run !== undefined) return { state: 'running', description: run.description, run };
    const ended = this.#ended.get(id);
    return ended === undefined ? undefined : { state: 'ended', ...ended };
  }

  ids(): readonly string[] {
    return [...this.#ended.keys(), ...this.#running.keys()];
  }

  /** The model ends this run itself and needs no notice of its end. */
  markKilled(id: string): void {
    this.#killed.add(id);
  }

  /** Gives no more notices. */
  close(): void {
    this.#closed = true;
  }

  #remember(jobId: string, description: string, result: SubagentResult): void {
    this.#ended.set(jobId, { description, result });
    const oldest = this.#ended.keys().next().value;
    if (this.#ended.size > mostEnded && oldest !== undefined) this.#ended.delete(oldest);
  }

  #markTold(texts: readonly string[]): void {
    for (const [jobId, text] of this.#untold) {
      if (texts.includes(text)) this.#untold.delete(jobId);
    }
  }
}

/** In brackets, as all notices of the program: it is nobody's request. */
function noticeOf(jobId: string, description: string, stopReason: SubagentResult['stopReason']): string {
  return `[background subagent job ${jobId} (${description}) ${endedWords[stopReason]}; read it with subagent_output]`;
}
