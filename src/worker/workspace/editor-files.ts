/**
 * Which version of a file counts where the client has one of its own: the text in its editor, or what is on the disk.
 *
 * Unsaved text counts, since it is what the person sees. But commands and agents that work beside this one know the disk
 * alone: once one of them has run, a file that has changed on the disk since editor and disk last agreed counts as it is there.
 */
import { createHash } from 'node:crypto';
import { isInsideAny } from '../../shared/path-inside.ts';
import type { ClientFiles } from './client-files.ts';

/** A file of the disk; its text without a BOM, line ends as they are. */
export interface DiskText {
  readonly version: string;
  /** Epoch milliseconds. */
  readonly changedAt: number;
  readonly text: string;
}

/** `hash` is that of the text that counts; absent where the client has no say. */
export type Counting =
  /** `isDisputed`: the editor holds another text, which does not count. */
  | { readonly source: 'disk'; readonly hash?: string; readonly isDisputed: boolean }
  | { readonly source: 'editor'; readonly text: string; readonly hash: string };

export interface EditorFilesOptions {
  /** The directories of the workspace, canonical. */
  readonly roots: readonly string[];
  readonly client: ClientFiles;
  /** Whether something that was started in the background still works on the disk. */
  readonly isWorkRunning: () => Promise<boolean>;
  /** Epoch milliseconds. */
  readonly wallClock: () => number;
}

/** File systems take the time of a change from a clock that is a little behind. */
const clockSlackMs = 100;

/** A moment at which editor and disk agreed, or at which the editor's unsaved text was taken over this version of the disk. */
interface Agreement {
  /** Of the disk; `undefined` for no file. */
  readonly version: string | undefined;
  readonly works: number;
}

export class EditorFiles {
  readonly client: ClientFiles;
  readonly #options: EditorFilesOptions;
  readonly #agreements = new Map<string, Agreement>();
  /** Hashes of texts that a tool has replaced on the disk. */
  readonly #replaced = new Map<string, string>();
  #works = 0;
  #firstWorkAt: number | undefined;

  constructor(options: EditorFilesOptions) {
    this.#options = options;
    this.client = options.client;
  }

  /** Whether the client is asked about this canonical path. */
  covers(path: string): boolean {
    return !this.client.isGivenUp && isInsideAny(this.#options.roots, path);
  }

  /** A command, another agent or another program is about to work on the disk. */
  noteWork(): void {
    this.#works += 1;
    this.#firstWorkAt ??= this.#options.wallClock();
  }

  /** Editor and disk hold the same, or the editor's text is known to stand over this version of the disk. */
  agree(path: string, version: string | undefined): void {
    this.#agreements.set(path, { version, works: this.#works });
  }

  /**
   * A tool has written the disk past the editor, which may take a moment to notice: its text of before is then not an unsaved one.
   * A dispute about the file goes on.
   */
  noteDiskWrite(path: string, version: string, before: Counting): void {
    if (before.source === 'disk' && before.isDisputed) return;
    this.agree(path, version);
    if (before.hash !== undefined) this.#replaced.set(path, before.hash);
  }

  /**
   * Asks the client for a covered path and decides.
   *
   * @param disk `undefined` when there is no such file
   * @throws the signal's reason when it aborts first
   */
  async counting(path: string, disk: DiskText | undefined, signal: AbortSignal): Promise<Counting> {
    const answer = await this.client.read(path, signal);
    if (answer.kind !== 'text') return { source: 'disk', isDisputed: false, ...(disk === undefined ? {} : { hash: textHash(disk.text) }) };
    const hash = textHash(answer.text);
    const diskHash = disk === undefined ? undefined : textHash(disk.text);
    if (hash === diskHash) {
      this.#replaced.delete(path);
      this.agree(path, disk?.version);
      return { source: 'disk', hash, isDisputed: false };
    }
    if (diskHash !== undefined && hash === this.#replaced.get(path)) return { source: 'disk', hash: diskHash, isDisputed: false };
    if (await this.#hasChangedBehind(path, disk)) {
      return { source: 'disk', isDisputed: true, ...(diskHash === undefined ? {} : { hash: diskHash }) };
    }
    this.agree(path, disk?.version);
    return { source: 'editor', text: answer.text, hash };
  }

  /** Whether something other than the editor and the file tools has changed the disk since the two agreed. */
  async #hasChangedBehind(path: string, disk: DiskText | undefined): Promise<boolean> {
    const agreed = this.#agreements.get(path);
    if (agreed === undefined) {
      const { changedAt = Number.POSITIVE_INFINITY } = disk ?? {};
      return this.#firstWorkAt !== undefined && changedAt >= this.#firstWorkAt - clockSlackMs;
    }
    if (agreed.version === disk?.version) return false;
    return this.#works > agreed.works || (await this.#options.isWorkRunning());
  }
}

/** Of a text as an editor may hold it: line ends, a BOM and the end of the last line are the file's and not the text's. */
export function textHash(text: string): string {
  return createHash('sha256')
    .update(text.replaceAll('\r\n', '\n').replace(/^\uFEFF|\n$/g, ''))
    .digest('hex');
}
