/**
 * A file that lines are only ever put behind, each durable before it is spoken of. A failed append leaves the file as it was, and
 * makes every later one fail: after a failed sync nobody knows what the disk holds.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ServerError } from '../../../shared/errors.ts';
import { readAt } from '../line-scan.ts';

export class AppendFile {
  readonly path: string;
  readonly #file: FileHandle;
  #size: number;
  #failed: ServerError | undefined;

  private constructor(path: string, file: FileHandle, size: number) {
    this.path = path;
    this.#file = file;
    this.#size = size;
  }

  /** Opens the file, or makes it, durably. @throws ServerError LOG_WRITE_FAILED */
  static async open(path: string): Promise<AppendFile> {
    try {
      const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o644);
      const { size } = await file.stat();
      if (size === 0) await syncDirectory(dirname(path));
      return new AppendFile(path, file, size);
    } catch (error) {
      throw writeFailed(path, error);
    }
  }

  get handle(): FileHandle {
    return this.#file;
  }

  get size(): number {
    return this.#size;
  }

  /** Fulfils with the place of the text's first byte, once it is on the disk. One at a time. @throws ServerError LOG_WRITE_FAILED */
  async append(text: string): Promise<number> {
    if (this.#failed !== undefined) throw this.#failed;
    const bytes = Buffer.from(text);
    const place = this.#size;
    try {
      for (let written = 0; written < bytes.length; ) {
        const { bytesWritten } = await this.#file.write(bytes, written, bytes.length - written, place + written);
        written += bytesWritten;
      }
      await this.#file.datasync();
    } catch (error) {
      this.#failed = writeFailed(this.path, error);
      // Half a line in the middle of the file would damage it; should this fail as well, the next start cuts the torn tail.
      await this.#file.truncate(place).catch(() => undefined);
      throw this.#failed;
    }
    this.#size = place + bytes.length;
    return place;
  }

  /** Cuts the file. @throws ServerError LOG_WRITE_FAILED */
  async truncate(size: number): Promise<void> {
    try {
      await this.#file.truncate(size);
      await this.#file.datasync();
      this.#size = size;
    } catch (error) {
      throw writeFailed(this.path, error);
    }
  }

  async read(offset: number, length: number): Promise<string> {
    return await readAt(this.#file, offset, length);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export function writeFailed(path: string, error: unknown): ServerError {
  const reason = (error as NodeJS.ErrnoException).code ?? 'an unknown reason';
  return new ServerError('LOG_WRITE_FAILED', `${path} could not be written (${reason}).`, { cause: error });
}
