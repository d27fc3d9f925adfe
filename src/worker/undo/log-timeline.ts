/**
 * What a log says that an undo needs: the prompts that make up the conversation, the changes of files, what was undone
 * already. Made from the log when somebody asks, and thrown away after: a session pays nothing for it while it works.
 */
import type { EventData, LogEvent, TodoEntry } from '../../shared/events.ts';
import { aliveRanges, type EventRange, isAlive, type Rewind } from '../agent/alive-events.ts';

export interface PromptTurn {
  readonly turn: number;
  /** `seq` of its `turn/start`. */
  readonly seq: number;
  messageId: string | undefined;
  content: EventData['user/message']['content'];
}

export type RecordedChange = EventData['file/snapshot'] & {
  readonly seq: number;
  /** Whether the log says that the change was made; one that may not have been leaves the file in either state. */
  made: boolean;
};

/** A call whose body has run. */
export interface StartedCall {
  readonly turn: number;
  readonly name: string;
  /** JSON; cut, and so no longer JSON, where it was very long. */
  readonly arguments: string;
  /** What it changed is among the changes. */
  recorded: boolean;
  /** It said itself that it failed. */
  failed: boolean;
}

const longestArguments = 16 * 1024;

/** Refusals of a file tool that leave the file as it was. After any other failure the change may have been made. */
const nothingWritten = new Set([
  'FS_STALE',
  'FS_PATH_CHANGED',
  'FS_NOT_FOUND',
  'FS_NOT_REGULAR_FILE',
  'FS_NOT_DIRECTORY',
  'FS_PERMISSION_DENIED',
]);

export class LogTimeline {
  readonly #changes = new Set<RecordedChange>();
  readonly #turns: PromptTurn[] = [];
  readonly #turnOfMessage = new Map<string, number>();
  readonly #named = new Map<string, StartedCall>();
  readonly #started: StartedCall[] = [];
  readonly #changesOfCall = new Map<string, RecordedChange[]>();
  readonly #rewinds: Rewind[] = [];
  readonly #todos: { readonly seq: number; readonly todos: readonly TodoEntry[] }[] = [];
  /** What a redo would take back, the newest last: `seq` of each `undo/start`. */
  #redoable: number[] = [];
  #pending: number | undefined;
  #lastStart: number | undefined;
  #end = 0;

  /** Takes in every event of the log, in order. */
  observe(event: LogEvent): void {
    this.#end = event.seq + 1;
    const { type, seq, data } = event;
    if (type === 'turn/start') this.#noteTurn(seq, data);
    else if (type === 'user/message') this.#noteMessage(data);
    else if (type === 'assistant/message') this.#turnOfMessage.set(data.messageId, data.turn);
    else if (type === 'tool/call') this.#noteCall(data);
    else if (type === 'tool/start') this.#noteStart(data.callId);
    else if (type === 'tool/result') this.#noteResult(data);
    else if (type === 'todo/write') this.#todos.push({ seq, todos: data.todos });
    else if (type === 'file/snapshot') this.#noteChange(seq, data);
    else if (type === 'workspace/observed') this.#noteObserved(data);
    else if (type === 'undo/start') this.#noteUndo(seq);
    else if (type === 'history/rewound') this.#noteRewound(seq, data);
  }

  /** In log order, without those that are known not to have been made. */
  get changes(): readonly RecordedChange[] {
    return [...this.#changes];
  }

  /** The prompts that make up the conversation, oldest first. A turn without one, as a summary that was asked for, is none. */
  turns(): readonly PromptTurn[] {
    return this.turnsAt(this.#end);
  }

  /** Those that made it up right before event `end`. */
  turnsAt(end: number): readonly PromptTurn[] {
    const ranges = aliveRanges(this.#rewinds, end);
    return this.#turns.filter(({ seq, messageId }) => messageId !== undefined && isAlive(ranges, seq));
  }

  /** The turn in which a message was said, whether it still counts or not. */
  turnOf(messageId: string): number | undefined {
    return this.#turnOfMessage.get(messageId);
  }

  /** `seq` of the `undo/start` that a redo would go back to. */
  get redoBase(): number | undefined {
    return this.#redoable.at(-1);
  }

  /** `seq` of the first `undo/start` since the last turn that was cut off. */
  get pending(): number | undefined {
    return this.#pending;
  }

  /** The plan now, and right before event `base`. */
  todosNowAndAt(base: number): readonly [readonly TodoEntry[], readonly TodoEntry[]] {
    const at = (end: number): readonly TodoEntry[] => {
      const ranges: readonly EventRange[] = aliveRanges(this.#rewinds, end);
      return this.#todos.findLast(({ seq }) => isAlive(ranges, seq))?.todos ?? [];
    };
    return [at(this.#end), at(base)];
  }

  /** What the turns ran, in order. */
  startedIn(turns: ReadonlySet<number>): readonly StartedCall[] {
    return this.#started.filter(({ turn }) => turns.has(turn));
  }

  #noteTurn(seq: number, { turn }: EventData['turn/start']): void {
    this.#turns.push({ turn, seq, messageId: undefined, content: [] });
    this.#redoable = [];
    this.#pending = undefined;
  }

  #noteMessage({ turn, messageId, source, content, shown }: EventData['user/message']): void {
    this.#turnOfMessage.set(messageId, turn);
    const last = this.#turns.at(-1);
    if (source !== 'prompt' || last?.turn !== turn || last.messageId !== undefined) return;
    last.messageId = messageId;
    last.content = shown ?? content;
  }

  #noteCall({ turn, callId, name, arguments: text }: EventData['tool/call']): void {
    this.#named.set(callId, { turn, name, arguments: text.slice(0, longestArguments), recorded: false, failed: false });
  }

  #noteStart(callId: string): void {
    const call = this.#named.get(callId);
    if (call !== undefined) this.#started.push(call);
  }

  #noteResult({ callId, isError, code }: EventData['tool/result']): void {
    const call = this.#named.get(callId);
    // What the program says in a call's place (TOOL_…) tells nothing of what it did.
    if (call !== undefined) call.failed = isError && code?.startsWith('TOOL_') !== true;
    this.#named.delete(callId);
    for (const change of this.#changesOfCall.get(callId) ?? []) {
      if (!isError) change.made = true;
      else if (code !== undefined && nothingWritten.has(code)) this.#changes.delete(change);
    }
    this.#changesOfCall.delete(callId);
  }

  #noteChange(seq: number, data: EventData['file/snapshot']): void {
    const change: RecordedChange = { ...data, seq, made: data.observed === true };
    this.#changes.add(change);
    const { callId } = data;
    if (callId === undefined || change.made) return;
    const call = this.#named.get(callId);
    if (call !== undefined) call.recorded = true;
    this.#changesOfCall.set(callId, [...(this.#changesOfCall.get(callId) ?? []), change]);
  }

  #noteObserved({ callId, why }: EventData['workspace/observed']): void {
    const call = this.#named.get(callId);
    if (call !== undefined && why === undefined) call.recorded = true;
  }

  #noteUndo(seq: number): void {
    this.#pending ??= seq;
    this.#lastStart = seq;
  }

  #noteRewound(seq: number, data: EventData['history/rewound']): void {
    const left = new Set(data.left?.map(({ path }) => path));
    for (const change of this.#changes) {
      // Those of an attempt that was cut off before it may or may not have been made.
      if (change.undo !== undefined && change.undo === this.#lastStart && !left.has(change.path)) change.made = true;
    }
    this.#rewinds.push({ seq, base: data.base });
    if (data.kind === 'redo') this.#redoable.pop();
    else this.#redoable.push(data.undo);
    this.#pending = undefined;
  }
}
