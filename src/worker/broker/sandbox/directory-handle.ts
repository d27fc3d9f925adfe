/**
 * A directory that is held open, so that what is done in it is done in that very directory, whatever happens to its path meanwhile.
 *
 * Node has no `openat`; the kernel's own links below `/proc/self/fd` do the same, since they lead to what is open and to no path. Linux only.
 * Nothing here follows a link of the workspace.
 */
import { constants, readlinkSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, readlink, rename, rmdir, symlink, unlink } from 'node:fs/promises';

/** Missing in `constants`. Opens anything without reading it, and asks no device. */
const pathOnly = 0o10000000;
const { O_NOFOLLOW, O_DIRECTORY, O_RDONLY, O_NONBLOCK, O_WRONLY, O_CREAT, O_EXCL } = constants;

/** What is at a path is not what was to be there: a link or another thing was put in its place, or the way to it. */
export class PlaceMoved extends Error {
  constructor(path: string) {
    super(`${path} is not where it was: a link or a directory was swapped`);
  }
}

/**
 * Opens what is exactly there: no link, and not reached through one. To be closed.
 *
 * @param path canonical
 * @returns `undefined` where nothing is
 * @throws PlaceMoved
 */
export async function openPlace(path: string): Promise<FileHandle | undefined> {
  const handle = await opened(path);
  if (handle === undefined) return undefined;
  try {
    if (readlinkSync(`/proc/self/fd/${handle.fd}`) === path && !(await handle.stat()).isSymbolicLink()) return handle;
  } catch {
    // Not to be told what it is: then it is not taken for what it should be.
  }
  await handle.close();
  throw new PlaceMoved(path);
}

async function opened(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, pathOnly | O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return undefined;
    throw error;
  }
}

/** Follows no link at the end, and waits for no pipe. `undefined` for what is no plain file, or larger than `maxBytes`. Never rejects. */
export async function readSmall(path: string, maxBytes: number): Promise<string | undefined> {
  return (await readBytes(path, maxBytes))?.toString('utf8');
}

async function readBytes(path: string, maxBytes: number): Promise<Buffer | undefined> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const entry = await file.stat();
    if (!entry.isFile() || entry.size > maxBytes) return undefined;
    const bytes = Buffer.alloc(entry.size + 1);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    // One that grows meanwhile is not read whole.
    return bytesRead > entry.size ? undefined : bytes.subarray(0, bytesRead);
  } catch {
    return undefined;
  } finally {
    await file.close().catch(() => undefined);
  }
}

export class DirectoryHandle {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** @param path canonical. @throws PlaceMoved, and where it cannot be opened */
  static async open(path: string): Promise<DirectoryHandle> {
    const handle = await openPlace(path);
    if (handle === undefined) throw new PlaceMoved(path);
    return new DirectoryHandle(handle);
  }

  /** Walks down, name by name; `undefined` where one is missing or is no directory. To be closed. */
  async below(names: readonly string[]): Promise<DirectoryHandle | undefined> {
    let current: DirectoryHandle | undefined = await this.child('.');
    for (const name of names) {
      const next: DirectoryHandle | undefined = await current?.child(name);
      await current?.close();
      current = next;
    }
    return current;
  }

  async child(name: string): Promise<DirectoryHandle | undefined> {
    try {
      return new DirectoryHandle(await open(this.#at(name), pathOnly | O_NOFOLLOW | O_DIRECTORY));
    } catch {
      return undefined;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close().catch(() => undefined);
  }

  /** `undefined` where nothing is. */
  async look(name: string): Promise<Stats | undefined> {
    return await lstat(this.#at(name)).catch(() => undefined);
  }

  async names(): Promise<string[]> {
    return await readdir(this.#at(''));
  }

  /** As {@link readSmall}. */
  async read(name: string, maxBytes: number): Promise<string | undefined> {
    return await readSmall(this.#at(name), maxBytes);
  }

  async readBytes(name: string, maxBytes: number): Promise<Buffer | undefined> {
    return await readBytes(this.#at(name), maxBytes);
  }

  async linkTarget(name: string): Promise<string | undefined> {
    return await readlink(this.#at(name)).catch(() => undefined);
  }

  /** Fails where something has that name. */
  async write(name: string, content: string | Buffer): Promise<void> {
    const file = await open(this.#at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o644);
    try {
      await file.writeFile(content);
    } finally {
      await file.close();
    }
  }

  /** Fails where something has that name. */
  async makeDirectory(name: string): Promise<void> {
    await mkdir(this.#at(name));
  }

  async link(name: string, target: string): Promise<void> {
    await symlink(target, this.#at(name));
  }

  /** To a path that only this program can change. */
  async moveOut(name: string, target: string): Promise<void> {
    await rename(this.#at(name), target);
  }

  async remove(name: string, isDirectory: boolean): Promise<void> {
    await (isDirectory ? rmdir : unlink)(this.#at(name));
  }

  #at(name: string): string {
    // Never normalised: without the last slash it would be the link itself.
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}
