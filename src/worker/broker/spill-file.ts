/**
 * A file that takes the whole of an output too large for memory.
 *
 * Made when first needed, readable by its user only, under a random name that nothing else can have taken. Stops growing
 * at its cap. A disk that fails costs the file, never the command.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';

export class SpillFile {
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #path: string;
  #file: FileHandle | undefined;
  #written = 0;
  #failed = false;
  #queue: Promise<void> = Promise.resolve();

  /** `directory` is absolute; `maxBytes` is where the file stops growing. */
  constructor(directory: string, maxBytes: number) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
    this.#path = join(directory, `output-${randomUUID()}.txt`);
  }

  /** Where the file is, or `undefined` when it could not be written. */
  get path(): string | undefined {
    return this.#failed ? undefined : this.#path;
  }

  /**
   * Appends in call order. Fulfils when written, so that the source can be held until then; `undefined` when there is
   * nothing to wait for. The bytes must not change meanwhile.
   */
  write(bytes: Buffer): Promise<void> | undefined {
    const room = this.#maxBytes - this.#written;
    if (this.#failed || room <= 0) return undefined;
    const part = bytes.length > room ? bytes.subarray(0, room) : bytes;
    this.#written += part.length;
    this.#queue = this.#queue.then(() => this.#append(part));
    return this.#queue;
  }

  /** Fulfils once everything is written and the file is closed. */
  async close(): Promise<void> {
    await this.#queue;
    await this.#file?.close().catch(() => this.#fail());
    this.#file = undefined;
  }

  async #append(bytes: Buffer): Promise<void> {
    if (this.#failed) return;
    try {
      this.#file ??= await this.#open();
      for (let done = 0; done < bytes.length; ) {
        done += (await this.#file.write(bytes, done, bytes.length - done)).bytesWritten;
      }
    } catch {
      // A full or read-only disk: the head and the tail in memory are still a result.
      await this.#fail();
    }
  }

  async #open(): Promise<FileHandle> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    return await open(this.#path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
  }

  async #fail(): Promise<void> {
    this.#failed = true;
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    // Half a file would be taken for the whole output. Failing here again changes nothing.
    await file.close().catch(() => undefined);
    await unlink(this.#path).catch(() => undefined);
  }
}
