/**
 * Images of a child, put into files of the session that delegates: a model's tool result holds text only.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SubagentActivity } from '../../../shared/subagent-protocol.ts';

const maxImages = 50;
const maxTotalBytes = 64 * 1024 * 1024;
const endings: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/gif': 'gif', 'image/webp': 'webp' };

export class ImageFiles {
  readonly #directory: string;
  #count = 0;
  #bytes = 0;
  #queue: Promise<void> = Promise.resolve();
  readonly #closed = new AbortController();

  /** `directory` is absolute; made when the first image comes. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes the image and tells of it, in order. An image beyond the bounds, or one that cannot be written, is left out. */
  save(data: string, mimeType: string, tell: (image: SubagentActivity) => void): void {
    const size = Math.floor((data.length * 3) / 4);
    if (this.#count >= maxImages || this.#bytes + size > maxTotalBytes) return;
    this.#count += 1;
    this.#bytes += size;
    this.#queue = this.#queue.then(() => this.#write(Buffer.from(data, 'base64'), mimeType, tell));
  }

  /** Writes no more from now on. Fulfils when the image that was being written is there, or gone again. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#queue;
  }

  /** Fulfils when all images are written. */
  async settled(): Promise<void> {
    await this.#queue;
  }

  async #write(bytes: Buffer, mimeType: string, tell: (image: SubagentActivity) => void): Promise<void> {
    const { signal } = this.#closed;
    if (signal.aborted) return;
    const path = join(this.#directory, `image-${randomUUID()}.${endings[mimeType] ?? 'bin'}`);
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await writeFile(path, bytes, { flag: 'wx', mode: 0o600, signal });
      signal.throwIfAborted();
      tell({ kind: 'image', mimeType: mimeType.slice(0, 100), bytes: bytes.length, path });
    } catch {
      // A full or read-only disk: the run is worth more than a picture of it. Or the run is over; half a picture is none.
      await rm(path, { force: true }).catch(() => undefined);
    }
  }
}
