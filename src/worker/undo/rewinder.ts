/**
 * Takes the conversation, and the files that it changed, back to an earlier moment; and forward again. Everything it needs
 * is read from the log, and everything it does is written there first, so that one that was cut off is completed by doing it
 * again.
 *
 * Works while no turn runs, and one at a time; whoever calls sees to the former.
 */
import { ServerError } from '../../shared/errors.ts';
import type { EventData, EventInput, LogEvent } from '../../shared/events.ts';
import type { RewindKind } from '../../shared/undo-events.ts';
import type { RewindOutcome, RewoundFile } from '../../shared/undo-protocol.ts';
import type { History } from '../agent/history.ts';
import type { ToolAccess, ToolContext } from '../tools/tool.ts';
import type { FileSnapshots } from './file-snapshots.ts';
import { LogTimeline } from './log-timeline.ts';
import { plannedFiles } from './planned-files.ts';
import { type FileOutcome, restoreFiles, type RestoreVerdict } from './restored-files.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import { workNotUndone } from './work-not-undone.ts';

export interface RewinderParts {
  readonly cwd: string;
  /** Reads the whole log. */
  readonly replay: (onEvent: (event: LogEvent) => void) => Promise<void>;
  /** Appends to the log and shows. @throws ServerError LOG_WRITE_FAILED */
  readonly record: (event: EventInput) => LogEvent;
  readonly barrier: () => Promise<void>;
  readonly history: History;
  /** The history of right before event `base`, made anew from the log. */
  readonly historyAt: (base: number) => Promise<History>;
  readonly store: SnapshotStore;
  readonly snapshots: FileSnapshots;
  /** What changes of files go through, beside the signal. */
  readonly context: Pick<ToolContext, 'files' | 'editor'>;
  /** What writing this path would need now; never rejects. */
  readonly mayWrite: (path: string) => Promise<RestoreVerdict>;
  /** Why the session may change no file at all now. */
  readonly refusesWrites: () => string | undefined;
  /** What a call touched; `undefined` when that is not known. */
  readonly accessOf: (toolName: string, args: unknown) => ToolAccess | undefined;
}

export interface RewindOptions {
  readonly files: boolean;
  readonly force: boolean;
  readonly signal: AbortSignal;
  /** Words for the client, shown and logged with the rewind; for callers whose own answer is not shown. */
  readonly note?: (outcome: RewindOutcome) => string;
}

/** Of each outcome the log names so many files that were left. */
const mostLeftLogged = 100;

export class Rewinder {
  readonly #parts: RewinderParts;
  #running = false;

  constructor(parts: RewinderParts) {
    this.#parts = parts;
  }

  /** What the log says now. */
  async timeline(): Promise<LogTimeline> {
    const timeline = new LogTimeline();
    await this.#parts.replay((event) => timeline.observe(event));
    return timeline;
  }

  /**
   * Undoes the last `prompts` prompts, or as many as there are; `undefined` when there is none.
   *
   * @throws ServerError SESSION_BUSY; INVALID_PARAMS where files may not be changed; LOG_WRITE_FAILED, LOG_CORRUPT; the signal's reason.
   *   A part may have been done then, and doing it again completes it
   */
  undo(prompts: number, options: RewindOptions): Promise<RewindOutcome | undefined> {
    return this.#alone(async () => {
      const timeline = await this.timeline();
      const first = timeline.turns().slice(-prompts)[0];
      return first === undefined ? undefined : await this.#goTo(first.seq, 'undo', timeline, options);
    });
  }

  /** Takes the last undo or rewind back; `undefined` when there is none since the last prompt. @throws as {@link undo} */
  redo(options: RewindOptions): Promise<RewindOutcome | undefined> {
    return this.#alone(async () => {
      const timeline = await this.timeline();
      const base = timeline.redoBase;
      return base === undefined ? undefined : await this.#goTo(base, 'redo', timeline, options);
    });
  }

  /**
   * Goes back to before the prompt that `find` chooses; `undefined` when it chooses none that is part of the conversation.
   *
   * @throws as {@link undo}
   */
  rewind(find: (timeline: LogTimeline) => number | undefined, options: RewindOptions): Promise<RewindOutcome | undefined> {
    return this.#alone(async () => {
      const timeline = await this.timeline();
      const wanted = find(timeline);
      const turn = wanted === undefined ? undefined : timeline.turns().find((one) => one.turn === wanted);
      return turn === undefined ? undefined : await this.#goTo(turn.seq, 'rewind', timeline, options);
    });
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running) throw new ServerError('SESSION_BUSY', 'An undo of this session is running.');
    this.#running = true;
    try {
      return await work();
    } finally {
      this.#running = false;
    }
  }

  async #goTo(base: number, kind: RewindKind, timeline: LogTimeline, options: RewindOptions): Promise<RewindOutcome> {
    const { record, barrier, history, context } = this.#parts;
    const planned = options.files ? plannedFiles(timeline.changes, base) : [];
    const refusal = planned.length === 0 ? undefined : this.#parts.refusesWrites();
    if (refusal !== undefined) throw new ServerError('INVALID_PARAMS', refusal, { data: { field: 'files' } });
    const turns = turnsConcerned(timeline, base, kind);
    // Before anything is changed: a log that cannot be read again must not leave a history that is not its own.
    const anew = history.rewinds.isInMemory(base) ? undefined : await this.#parts.historyAt(base);
    options.signal.throwIfAborted();
    const started = record({ type: 'undo/start', data: { kind, base, files: options.files, force: options.force } });
    await barrier();
    const outcomes = await this.#restore(planned, { undo: started.seq, turn: history.turn }, options);
    context.files.forgetAll();
    const outcome: RewindOutcome = {
      kind,
      turns: [...turns],
      files: outcomes.filter(isShown),
      notUndone: workNotUndone(timeline.startedIn(turns), this.#parts.accessOf),
    };
    const event = record({ type: 'history/rewound', data: rewoundData(outcome, { base, undo: timeline.pending ?? started.seq }, options) });
    history.apply(event);
    if (anew !== undefined) history.adopt(anew);
    this.#restorePlan(timeline, base);
    await barrier();
    return outcome;
  }

  async #restore(
    planned: ReturnType<typeof plannedFiles>,
    place: { readonly undo: number; readonly turn: number },
    { force, signal }: RewindOptions,
  ): Promise<FileOutcome[]> {
    const { cwd, store, snapshots, mayWrite, context, record, barrier } = this.#parts;
    const log = { record, barrier };
    return await restoreFiles(planned, {
      cwd,
      store,
      mayWrite,
      force,
      // What is overwritten by force must be there to be brought back.
      context: {
        ...context,
        signal,
        keepBefore: (change) => snapshots.keep(change, place, log, force),
        noteActual: (change) => snapshots.noteActual(change, place, log),
      },
    });
  }

  /** The plan that a client shows is the one that the conversation speaks of. */
  #restorePlan(timeline: LogTimeline, base: number): void {
    const [now, then] = timeline.todosNowAndAt(base);
    if (JSON.stringify(now) !== JSON.stringify(then)) this.#parts.record({ type: 'todo/write', data: { todos: then } });
  }
}

function turnsConcerned(timeline: LogTimeline, base: number, kind: RewindKind): ReadonlySet<number> {
  const now = timeline.turns();
  const then = timeline.turnsAt(base);
  const [more, fewer] = kind === 'redo' ? [then, now] : [now, then];
  const kept = new Set(fewer.map(({ turn }) => turn));
  return new Set(more.map(({ turn }) => turn).filter((turn) => !kept.has(turn)));
}

function isShown(file: FileOutcome): file is RewoundFile {
  return file.outcome !== 'unchanged';
}

function rewoundData(
  outcome: RewindOutcome,
  place: { readonly base: number; readonly undo: number },
  { note }: RewindOptions,
): EventData['history/rewound'] {
  const { kind, turns, files } = outcome;
  const count = (wanted: RewoundFile['outcome']): number => files.filter((file) => file.outcome === wanted).length;
  const left = files.filter((file) => file.outcome === 'left').slice(0, mostLeftLogged);
  return {
    kind,
    ...place,
    turns,
    restored: count('restored'),
    removed: count('removed'),
    ...(left.length === 0 ? {} : { left: left.map(({ path, why = '' }) => ({ path, why })) }),
    ...(note === undefined ? {} : { note: note(outcome) }),
  };
}
