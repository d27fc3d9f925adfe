/**
 * What files held before they were changed, each content once, under its SHA-256 in the session's own directory. Outside of
 * whatever version control the person uses.
 *
 * A file here is written whole and then never touched, so that a copied session may share it by a hard link. Who reads one
 * gets the content of that hash or nothing.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface SnapshotLimits {
  /** Greatest size of one content, in bytes. */
  readonly fileBytes: number;
  /** Of all contents of a session together. */
  readonly sessionBytes: number;
  readonly sessionFiles: number;
}

export const snapshotLimits: SnapshotLimits = { fileBytes: 10 * 1024 * 1024, sessionBytes: 256 * 1024 * 1024, sessionFiles: 10_000 };

/** Why a content is not kept. */
export type NotKept = 'file-too-large' | 'session-full' | 'disk';

const hashName = /^[0-9a-f]{64}$/;
const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** SHA-256 in lower-case hexadecimal. */
export function contentHash(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export class SnapshotStore {
  readonly limits: SnapshotLimits;
  readonly #directory: string;
  /** Sizes by hash; known once the directory was read. */
  #sizes: Map<string, number> | undefined;
  #bytes = 0;

  /** Touches no disk. @param sessionDirectory absolute; it and the directory below it are made when first needed */
  constructor(sessionDirectory: string, limits: SnapshotLimits = snapshotLimits) {
    this.#directory = join(sessionDirectory, 'snapshots');
    this.limits = limits;
  }

  /**
   * Keeps a content, on the disk when this fulfils. Never rejects: says why it is not kept, or `undefined` when it is.
   * One call at a time.
   */
  async keep(content: Buffer, hash: string): Promise<NotKept | undefined> {
    if (content.length > this.limits.fileBytes) return 'file-too-large';
    try {
      const sizes = await this.#known();
      if (sizes.get(hash) === content.length) return undefined;
      if (sizes.size >= this.limits.sessionFiles || this.#bytes + content.length > this.limits.sessionBytes) return 'session-full';
      await this.#write(content, hash);
      sizes.set(hash, content.length);
      this.#bytes += content.length;
      return undefined;
    } catch {
      // The disk is full, or the directory cannot be written. The change goes on; its log says that it cannot be undone.
      return 'disk';
    }
  }

  /** The content of this hash; `undefined` when it is gone or no longer what it was. */
  async read(hash: string): Promise<Buffer | undefined> {
    if (!hashName.test(hash)) return undefined;
    try {
      const handle = await open(join(this.#directory, hash), readFlags);
      try {
        const stats = await handle.stat();
        if (!stats.isFile() || stats.size > this.limits.fileBytes) return undefined;
        const content = await handle.readFile();
        return contentHash(content) === hash ? content : undefined;
      } finally {
        await handle.close();
      }
    } catch {
      return undefined; // Deleted, or not readable any more.
    }
  }

  async #known(): Promise<Map<string, number>> {
    if (this.#sizes !== undefined) return this.#sizes;
    await makeDurably(this.#directory);
    const sizes = new Map<string, number>();
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      if (hashName.test(name)) sizes.set(name, (await stat(path)).size);
      // What a killed process had begun to write.
      else if (name.endsWith('.tmp')) await unlink(path).catch(() => undefined);
    }
    this.#bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    this.#sizes = sizes;
    return sizes;
  }

  async #write(content: Buffer, hash: string): Promise<void> {
    const draft = join(this.#directory, `${randomBytes(8).toString('hex')}.tmp`);
    try {
      const handle = await open(draft, createFlags, 0o600);
      try {
        await handle.chmod(0o600);
        await handle.writeFile(content);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(draft, join(this.#directory, hash));
    } catch (error) {
      await unlink(draft).catch(() => undefined);
      throw error;
    }
    await syncDirectory(this.#directory);
  }
}

/** Makes the directory and the one above it, both closed to others, and their names durable. */
async function makeDurably(directory: string): Promise<void> {
  const parent = dirname(directory);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const made = await mkdir(directory, { recursive: true, mode: 0o700 });
  if (made === undefined) return;
  await syncDirectory(parent);
  await syncDirectory(dirname(parent));
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } catch {
    // Some file systems refuse to sync a directory; the file in it is complete either way.
  } finally {
    await handle.close();
  }
}
