/**
 * What the card of a delegating call shows while its child works: the child's plan, its last calls, the end of its text and
 * what it has used, replaced as a whole each time.
 *
 * The log merges what a child does into two moments a second at most, and one moment is one update; so this needs no clock,
 * and a replayed log gives the same updates.
 */
import type { EventData } from '../../shared/events.ts';
import { RunProgress } from '../subagents/run-progress.ts';

interface ShownRun {
  readonly progress: RunProgress;
  /** Something came that no update has shown. */
  changed: boolean;
}

export class SubagentCards {
  readonly #byCall = new Map<string, ShownRun>();

  /** A background run shows nothing: its call has ended by then. */
  start({ callId, background }: EventData['subagent/start']): void {
    if (!background) this.#byCall.set(callId, { progress: new RunProgress(), changed: false });
  }

  /** The text to show now; `undefined` when there is none, or when more of the same moment follows. */
  activity({ callId, activity, more }: EventData['subagent/activity']): string | undefined {
    const run = this.#byCall.get(callId);
    if (run === undefined) return undefined;
    run.progress.apply(activity);
    // What a child uses is shown with whatever it does next.
    run.changed ||= activity.kind !== 'usage';
    if (more === true || !run.changed) return undefined;
    run.changed = false;
    return run.progress.text();
  }

  /** What was shown last; for a card that has to be restored. */
  shown(callId: string): string | undefined {
    const text = this.#byCall.get(callId)?.progress.text();
    return text === '' ? undefined : text;
  }

  end({ callId }: EventData['subagent/end']): void {
    this.#byCall.delete(callId);
  }

  endAll(): void {
    this.#byCall.clear();
  }
}
