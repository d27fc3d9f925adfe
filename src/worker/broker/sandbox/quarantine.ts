/**
 * Where control files go that a command made without anybody having been asked: out of the workspace, into a directory of the session's own. A move
 * where that is one file system; else a bounded copy, and then the thing itself is removed.
 */
import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DirectoryHandle } from './directory-handle.ts';

const mostEntries = 1_000;
const mostBytes = 4 * 1024 * 1024;
/** Of directories in one another. Deeper ones are not copied and not removed. */
const deepest = 64;

interface Budget {
  entries: number;
  bytes: number;
}

export class Quarantine {
  readonly #directory: string | undefined;

  /** @param directory absolute; made when first needed. Without it each thing gets one of its own among the temporary files */
  constructor(directory: string | undefined) {
    this.#directory = directory;
  }

  /** @returns where it is now. Rejects where it could not be taken out of the way */
  async take(parent: DirectoryHandle, name: string): Promise<string> {
    const target = join(await this.#place(), name);
    try {
      await parent.moveOut(name, target);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
      await copy(parent, name, target, { entries: mostEntries, bytes: mostBytes }, 0);
      await remove(parent, name, 0);
    }
    return target;
  }

  /** One for each thing, since the same file may be made again and again. */
  async #place(): Promise<string> {
    if (this.#directory === undefined) return await mkdtemp(join(tmpdir(), 'dsh-acp-quarantine-'));
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    return await mkdtemp(join(this.#directory, '0-'));
  }
}

/** As much of it as the budget allows; what is no file, directory or link is left out. Never rejects. */
async function copy(parent: DirectoryHandle, name: string, target: string, budget: Budget, depth: number): Promise<void> {
  if (budget.entries <= 0 || depth > deepest) return;
  budget.entries -= 1;
  try {
    const entry = await parent.look(name);
    if (entry === undefined) return;
    if (entry.isSymbolicLink()) return await symlink((await parent.linkTarget(name)) ?? '', target);
    if (!entry.isDirectory()) {
      const content = await parent.readBytes(name, budget.bytes);
      if (content === undefined) return;
      budget.bytes -= content.length;
      return await writeFile(target, content, { mode: 0o600, flag: 'wx' });
    }
    await mkdir(target, { mode: 0o700 });
    await inside(parent, name, async (directory, inner) => await copy(directory, inner, join(target, inner), budget, depth + 1));
  } catch {
    // What cannot be kept is lost: it must not stay where it is.
  }
}

async function remove(parent: DirectoryHandle, name: string, depth: number): Promise<void> {
  const entry = await parent.look(name);
  if (entry === undefined || depth > deepest) return;
  if (entry.isDirectory()) await inside(parent, name, async (directory, inner) => await remove(directory, inner, depth + 1));
  await parent.remove(name, entry.isDirectory());
}

async function inside(
  parent: DirectoryHandle,
  name: string,
  each: (directory: DirectoryHandle, inner: string) => Promise<void>,
): Promise<void> {
  const directory = await parent.child(name);
  if (directory === undefined) return;
  try {
    // One after the other: a directory may hold very many.
    for (const inner of await directory.names()) await each(directory, inner);
  } finally {
    await directory.close();
  }
}
