/**
 * What an attempt changed: the difference between its worktree and the commit it was made from, new and binary files and modes included, what
 * `.gitignore` names left out. Takes neither the worktree's own index nor the repository's store of objects, so nothing of it stays in either.
 */
import { isUtf8 } from 'node:buffer';
import { copyFile, mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { git } from './git.ts';
import { harmlessSettings } from './repository-settings.ts';
import type { Worktree } from './worktrees.ts';

/** A longer patch goes into a file of its own. */
const inlineBytes = 2 * 1024 * 1024;

export interface PatchOptions {
  /** For files that are needed meanwhile; emptied again. Absolute, unique, on the disk of {@link filePath} if possible. */
  readonly scratch: string;
  /** Where a patch goes that cannot stand in a result line. Absolute; its directory is made. */
  readonly filePath: string;
  readonly signal: AbortSignal;
}

export type Patch = { readonly text: string } | { readonly path: string };

/** @throws GitFailed, or the system's error */
export async function takePatch(worktree: Worktree, options: PatchOptions): Promise<Patch> {
  await mkdir(join(options.scratch, 'objects'), { recursive: true });
  try {
    // Read now: the attempt may have changed them.
    const settings = await harmlessSettings(worktree.gitDir);
    const run = async (args: readonly string[], outputTo?: number): Promise<void> =>
      await runGit(worktree, { ...options, settings }, args, outputTo);
    const index = join(options.scratch, 'index');
    await copyIndex(join(worktree.gitDir, 'index'), index);
    try {
      await run(addAll);
    } catch {
      // The attempt has damaged its index: start from the commit's.
      await rm(index, { force: true });
      await run(['read-tree', worktree.baseCommit]);
      await run(addAll);
    }
    const draft = join(options.scratch, 'patch');
    const file = await open(draft, 'wx', 0o644);
    try {
      await run([...difference, worktree.baseCommit, '--'], file.fd);
    } finally {
      await file.close();
    }
    return await place(draft, options.filePath);
  } finally {
    await rm(options.scratch, { recursive: true, force: true });
  }
}

const addAll = ['-c', 'core.safecrlf=false', '-c', 'advice.addEmbeddedRepo=false', 'add', '--all', '.'];
const difference =
  'diff-index --cached --patch --binary --full-index --no-renames --no-color --no-ext-diff --no-textconv --src-prefix=a/ --dst-prefix=b/'.split(
    ' ',
  );

async function runGit(
  { directory, gitDir, commonDir }: Worktree,
  { scratch, signal, settings }: PatchOptions & { readonly settings: Readonly<Record<string, string>> },
  args: readonly string[],
  outputTo?: number,
) {
  const env = {
    ...settings,
    GIT_INDEX_FILE: join(scratch, 'index'),
    GIT_OBJECT_DIRECTORY: join(scratch, 'objects'),
    // Quoted, since a colon would end the path.
    GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(commonDir, 'objects')),
  };
  const where = [`--git-dir=${gitDir}`, `--work-tree=${directory}`];
  await git([...where, ...args], { cwd: directory, env, signal, ...(outputTo === undefined ? {} : { outputTo }) });
}

/** With its time, not a later one: git compares it with those of the files to know which it must read again. */
async function copyIndex(from: string, to: string): Promise<void> {
  try {
    const { atimeMs, mtimeMs } = await stat(from);
    await copyFile(from, to);
    await utimes(to, atimeMs / 1000, Math.floor(mtimeMs) / 1000);
  } catch {
    // There is none: git makes one.
  }
}

async function place(draft: string, filePath: string): Promise<Patch> {
  if ((await stat(draft)).size <= inlineBytes) {
    const bytes = await readFile(draft);
    // Lines of other encodings stand in a patch as they are, and would not survive JSON.
    if (isUtf8(bytes)) return { text: bytes.toString('utf8') };
  }
  await mkdir(dirname(filePath), { recursive: true });
  await moveFile(draft, filePath);
  return { path: filePath };
}

async function moveFile(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await copyFile(from, to);
  }
}
