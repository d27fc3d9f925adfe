/**
 * What the model of one session knows of the instruction files, and what it must be told now.
 *
 * The files stand in the system text from the first turn on, which then stays as it is, since providers cache it: what changes
 * later is told in the conversation. A change that fell out of the conversation again (a summary, an undo, a refused turn)
 * brings the whole of them into the system text once more. The log says all of this, so a reopened session knows it, too.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EventData, LogEvent } from '../../shared/events.ts';
import type { FoundFile, InstructionPlaces } from './instruction-places.ts';
import { changeNotice, type InstructionFile, instructionBlock } from './instruction-text.ts';
import { readInstructions } from './read-instructions.ts';
import { findRecently } from './recent-looks.ts';

/** A file system that is slower than this keeps its instructions to itself until the session is attached again. */
const deadlineMs = 2_000;

/** `text` is for the conversation. */
export type InstructionNews =
  | { readonly given: 'system'; readonly files: EventData['instructions/read']['files'] }
  | { readonly given: 'notice'; readonly files: EventData['instructions/read']['files']; readonly text: string };

/** Files that the session has read, by canonical path. */
export interface SeenPaths {
  readonly paths: Iterable<string>;
  readonly remembered: number;
}

type Told = EventData['instructions/read'] & { readonly seq: number };

export interface SessionInstructionsOptions extends InstructionPlaces {
  readonly deadlineMs?: number;
  /** Fulfils when the directory's file system has answered. */
  readonly answers?: (directory: string) => Promise<unknown>;
  /** Says once that the files could not be looked at in time. */
  readonly onLate?: () => void;
}

export class SessionInstructions {
  readonly #options: SessionInstructionsOptions;
  #told: Told | undefined;
  #headerSeq = -1;
  /** What was told is not part of the conversation any more. */
  #isLost = false;
  #block: string | undefined;
  #looked: { readonly signature: string; readonly files: readonly InstructionFile[] } | undefined;
  #isLate = false;
  #remembered: number | undefined;
  /** Monotonic milliseconds: the session has worked until then, and its own work, or who saw it end, may have changed the files. */
  #notBefore = performance.now();

  constructor(options: SessionInstructionsOptions) {
    this.#options = options;
  }

  /** The part of the system text; empty until the first {@link news}, and where there are no files. */
  get block(): string {
    return this.#block ?? '';
  }

  /** Whether it is worth to ask for {@link news} again within a turn: the session has read more files since. */
  hasNewPlaces(seen: SeenPaths): boolean {
    return !this.#isLate && seen.remembered !== this.#remembered;
  }

  /** Takes in the next event, live or replayed, in log order. */
  observe(event: LogEvent): void {
    const { type, data } = event;
    if (type === 'instructions/read') {
      this.#told = { ...data, seq: event.seq };
      this.#isLost = false;
    } else if (type === 'request/header') this.#headerSeq = event.seq;
    else if (type === 'history/compacted') this.#loseIf((told) => told.seq <= data.throughSeq);
    else if (type === 'history/rewound') this.#loseIf(() => true);
    else if (type === 'turn/end') {
      this.#notBefore = performance.now();
      if (data.reason.kind === 'refusal') this.#loseIf((told) => told.turn === data.turn);
    }
  }

  /**
   * Looks at the files, for at most two seconds, and says what the model must be told; `undefined` when it knows them.
   *
   * @param seen what the session has read: directories below the workspace's own may have such files, too
   * @param logged the part of the system text that the log's last header has in the place of {@link block}; `undefined` when
   *   there is no such header: the next request has a new system text in any case
   */
  async news(logged: string | undefined, seen: SeenPaths, signal: AbortSignal): Promise<InstructionNews | undefined> {
    const files = await this.#look(seen, signal);
    const before = this.#told?.files ?? [];
    if (files === undefined) {
      this.#block ??= logged ?? '';
      return undefined;
    }
    // An event that says so has its header behind it, unless the server was killed between the two.
    const isCutOff = this.#told?.given === 'system' && this.#headerSeq < this.#told.seq;
    if (logged === undefined || this.#isLost || isCutOff) {
      this.#block = instructionBlock(files);
      const isKnown = this.#told === undefined ? files.length === 0 : this.#told.given === 'system' && isSame(files, before);
      return isKnown ? undefined : { given: 'system', files: files.map(entryOf) };
    }
    this.#block ??= logged;
    const changed = files.filter((file) => !before.some(({ path, digest }) => path === file.path && digest === file.digest));
    const removed = before.flatMap(({ path }) => (files.some((file) => file.path === path) ? [] : [path]));
    if (changed.length === 0 && removed.length === 0) return undefined;
    return { given: 'notice', files: files.map(entryOf), text: changeNotice(changed, removed) };
  }

  #loseIf(isLost: (told: Told) => boolean): void {
    if (this.#told?.given === 'notice' && isLost(this.#told)) this.#isLost = true;
  }

  /** `undefined` when it takes too long, or the turn ends first. */
  async #look(seen: SeenPaths, signal: AbortSignal): Promise<readonly InstructionFile[] | undefined> {
    if (this.#isLate || signal.aborted) return undefined;
    const known = this.#knownStill(seen);
    if (known !== undefined) return known;
    let stop: () => void = () => undefined;
    const stopped = new Promise<'late' | 'aborted'>((resolve) => {
      const timer = setTimeout(() => resolve('late'), this.#options.deadlineMs ?? deadlineMs);
      const onAbort = (): void => resolve('aborted');
      signal.addEventListener('abort', onAbort, { once: true });
      stop = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      };
    });
    const files = await Promise.race([this.#lookNow(seen), stopped]);
    stop();
    if (typeof files !== 'string') return files;
    if (files === 'late') {
      this.#isLate = true;
      this.#options.onLate?.();
    }
    return undefined;
  }

  async #lookNow(seen: SeenPaths): Promise<readonly InstructionFile[]> {
    // What follows asks the disk without leaving the thread: only of directories that have answered once.
    if (this.#looked === undefined) await this.#placesAnswer();
    const found = this.#find(seen);
    const signature = signatureOf(found);
    if (this.#looked?.signature !== signature) this.#looked = { signature, files: await readInstructions(found) };
    return this.#looked.files;
  }

  /** What was read at an earlier look, where nothing has changed since: nearly always, and nothing has to be waited for. */
  #knownStill(seen: SeenPaths): readonly InstructionFile[] | undefined {
    return this.#looked !== undefined && signatureOf(this.#find(seen)) === this.#looked.signature ? this.#looked.files : undefined;
  }

  #find(seen: SeenPaths): readonly FoundFile[] {
    this.#remembered = seen.remembered;
    // Those that the model was told of stay, also when the session is attached again and has read nothing yet.
    const told = this.#told?.files.map(({ path }) => path) ?? [];
    const entered = [...new Set([...told, ...seen.paths].map((path) => dirname(path)))];
    const found = findRecently(this.#options, entered, this.#notBefore);
    this.#notBefore = performance.now();
    return found;
  }

  async #placesAnswer(): Promise<void> {
    const { cwd, additionalDirectories, answers = stat } = this.#options;
    const directories = [cwd, ...additionalDirectories];
    // One that is gone has answered, too.
    await Promise.allSettled(directories.map((directory) => answers(directory)));
  }
}

function signatureOf(found: readonly FoundFile[]): string {
  return found.map(({ signature }) => signature).join('\n');
}

function isSame(files: readonly InstructionFile[], before: Told['files']): boolean {
  return files.length === before.length && files.every(({ path, digest }, at) => path === before[at]?.path && digest === before[at].digest);
}

function entryOf({ path, digest, bytes, isClipped }: InstructionFile): EventData['instructions/read']['files'][number] {
  return { path, digest, bytes, ...(isClipped ? { clipped: true } : {}) };
}
