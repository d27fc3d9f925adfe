/**
 * Writes a file piece by piece with little memory; it appears under its name only when it is whole. What stands there and is no
 * regular file (a pipe, a terminal) is written to directly.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';

const flushChars = 256 * 1024;

export class FileSink {
  readonly #path: string;
  /** Where it is written until it is whole; `undefined` when written in place. */
  readonly #partial: string | undefined;
  readonly #file: FileHandle;
  #pieces: string[] = [];
  #chars = 0;
  /** Characters written so far, those that wait included. */
  written = 0;

  private constructor(path: string, partial: string | undefined, file: FileHandle) {
    this.#path = path;
    this.#partial = partial;
    this.#file = file;
  }

  /** @throws the system's error */
  static async open(path: string): Promise<FileSink> {
    if (await isSpecial(path)) return new FileSink(path, undefined, await open(path, 'w'));
    const partial = partialPath(path);
    return new FileSink(path, partial, await open(partial, 'w'));
  }

  /** Takes the text, or bytes as they are; the promise holds the caller back while the disk is slower. */
  async write(text: string | Uint8Array): Promise<void> {
    if (typeof text !== 'string') {
      await this.#flush();
      this.written += text.length;
      await this.#file.appendFile(text);
      return;
    }
    this.#pieces.push(text);
    this.#chars += text.length;
    this.written += text.length;
    if (this.#chars >= flushChars) await this.#flush();
  }

  /** @throws the system's error; nothing is left behind then */
  async close(): Promise<void> {
    try {
      await this.#flush();
      await this.#file.close();
      if (this.#partial !== undefined) await rename(this.#partial, this.#path);
    } catch (error) {
      await this.abandon();
      throw error;
    }
  }

  /** Drops what was written. Never rejects. */
  async abandon(): Promise<void> {
    this.#pieces = [];
    // Closed already, or never opened: both are fine here.
    await this.#file.close().catch(() => undefined);
    if (this.#partial !== undefined) await rm(this.#partial, { force: true }).catch(() => undefined);
  }

  async #flush(): Promise<void> {
    const text = this.#pieces.join('');
    this.#pieces = [];
    this.#chars = 0;
    // Appends until all bytes are taken: write alone may take fewer.
    await this.#file.appendFile(text);
  }
}

async function isSpecial(path: string): Promise<boolean> {
  try {
    return !(await stat(path)).isFile();
  } catch {
    return false; // Nothing there yet; a place that cannot be used shows when it is opened.
  }
}

/** In the same directory, since a rename does not cross file systems; short, since names have a limit. */
function partialPath(path: string): string {
  const slash = path.lastIndexOf('/') + 1;
  const name = createHash('sha256').update(path.slice(slash)).digest('hex').slice(0, 16);
  return `${path.slice(0, slash)}.${name}.partial`;
}
