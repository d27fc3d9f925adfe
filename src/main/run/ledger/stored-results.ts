/**
 * What earlier runs left: the results file, and beside it the results that wait for their turn in an ordered run. Read whole at the start, and
 * put into the form that this run needs. Whatever moment a run is killed at, each result is in at least one of the two files.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { quoted } from '../../../shared/quoted.ts';
import { configError } from '../../config/config-error.ts';
import type { Attempts } from '../jobs/attempts.ts';
import type { JobResult } from '../job-result.ts';
import { AppendFile, syncDirectory, writeFailed } from './append-file.ts';
import { type FoundResult, scanResults } from './results-scan.ts';

export interface StoredOptions {
  readonly path: string;
  readonly attempts: Attempts;
  readonly ordered: boolean;
  /** Results with status `error` are dropped, so that their attempts run again. */
  readonly retryErrors: boolean;
  /** Results of jobs that say something else by now are kept. */
  readonly force: boolean;
  /** Each result that is kept, once. */
  readonly onEarlier: (result: JobResult) => void;
}

export interface Kept {
  /** Of its attempt; `-1` for a result of a job that the file no longer has. */
  readonly index: number;
  readonly file: AppendFile;
  readonly offset: number;
  readonly length: number;
}

export interface Stored {
  readonly main: AppendFile;
  /** In an ordered run: results whose turn has not come, by attempt. */
  readonly waiting: { readonly file: AppendFile; readonly places: Map<number, Kept> } | undefined;
  /** A byte per attempt, 1 for done. */
  readonly done: Uint8Array;
  /** In an ordered run: how many attempts from the first on are in the main file. */
  readonly prefix: number;
  /** Results of jobs that the jobs file no longer has. */
  readonly strangers: number;
}

export function waitingPath(path: string): string {
  return `${path}.waiting`;
}

/**
 * @throws ServerError CONFIG_INVALID for a file that is no results file, or whose results are of other jobs; LOG_WRITE_FAILED when the disk refuses
 */
export async function openStored(options: StoredOptions): Promise<Stored> {
  const opened: AppendFile[] = [];
  const open = async (path: string): Promise<AppendFile> => {
    const file = await AppendFile.open(path);
    opened.push(file);
    return file;
  };
  try {
    const main = await open(options.path);
    const sidePath = waitingPath(options.path);
    const side = existsSync(sidePath) ? await open(sidePath) : undefined;
    const loading = new Loading(options);
    await loading.load(main, true);
    if (side !== undefined) await loading.load(side, false);
    loading.refuseChanged();
    const stored = options.ordered ? await layOrdered(loading, main, side) : await layPlain(loading, main, side);
    return { ...stored, done: loading.done, strangers: loading.strangers };
  } catch (error) {
    for (const file of opened) await file.close().catch(() => undefined);
    throw error;
  }
}

class Loading {
  readonly done: Uint8Array;
  readonly kept: Kept[] = [];
  strangers = 0;
  dropped = 0;
  readonly #options: StoredOptions;
  readonly #changed: string[] = [];

  constructor(options: StoredOptions) {
    this.#options = options;
    this.done = new Uint8Array(options.attempts.count);
  }

  async load(file: AppendFile, isMain: boolean): Promise<void> {
    const end = await scanResults(file.handle, file.path, (found) => this.#take(file, isMain, found));
    if (end < file.size) await file.truncate(end);
  }

  refuseChanged(): void {
    if (this.#changed.length === 0 || this.#options.force) return;
    const names = this.#changed.slice(0, 10).map((key) => JSON.stringify(key));
    const more = this.#changed.length > names.length ? ` and ${this.#changed.length - names.length} more` : '';
    throw configError({
      key: '--out',
      expected: `results of these jobs, but what the jobs file says of ${names.join(', ')}${more} has changed since; give another --out, or --force to keep the results`,
      where: this.#options.path,
    });
  }

  #take(file: AppendFile, isMain: boolean, { offset, length, result }: FoundResult): void {
    const { attempts, retryErrors, onEarlier } = this.#options;
    const index = attempts.indexOf(result.key) ?? -1;
    if (index !== -1 && this.done[index] === 1) {
      // Between the two files that is a run killed while it moved a result; in one file somebody else wrote it.
      if (!isMain) return;
      const expected = `one result of each attempt, but ${quoted(result.key)} has two`;
      throw configError({ key: '--out', expected, where: file.path });
    }
    if (retryErrors && index !== -1 && result.status === 'error') {
      this.dropped += 1;
      return;
    }
    this.kept.push({ index, file, offset, length });
    if (index === -1) {
      this.strangers += 1;
      return;
    }
    this.done[index] = 1;
    if (result.jobHash !== undefined && result.jobHash !== attempts.hash(index)) this.#changed.push(result.key);
    onEarlier(result);
  }
}

type Layout = Pick<Stored, 'main' | 'waiting' | 'prefix'>;

async function layPlain(loading: Loading, main: AppendFile, side: AppendFile | undefined): Promise<Layout> {
  if (side === undefined && loading.dropped === 0) return { main, waiting: undefined, prefix: 0 };
  const rewritten = await rewrite(main.path, loading.kept);
  await main.close();
  await side?.close();
  await rm(waitingPath(main.path), { force: true });
  return { main: rewritten, waiting: undefined, prefix: 0 };
}

async function layOrdered(loading: Loading, main: AppendFile, side: AppendFile | undefined): Promise<Layout> {
  let prefix = 0;
  while (loading.done[prefix] === 1) prefix += 1;
  const inOrder = loading.kept.every((kept, at) => kept.file === main && (at === 0 || kept.index >= (loading.kept[at - 1]?.index ?? -1)));
  const fits = inOrder && loading.dropped === 0 && (loading.kept.at(-1)?.index ?? -1) < prefix;
  if (fits && side === undefined) {
    return { main, waiting: { file: await AppendFile.open(waitingPath(main.path)), places: new Map() }, prefix };
  }
  const sorted = [...loading.kept].sort((a, b) => a.index - b.index);
  // All of them first, also those that go to the main file next: a kill between the two loses nothing.
  const waiting = await rewrite(waitingPath(main.path), sorted);
  const rewritten = await rewrite(
    main.path,
    sorted.filter(({ index }) => index < prefix),
  );
  await main.close();
  await side?.close();
  return { main: rewritten, waiting: { file: waiting, places: placesIn(waiting, sorted, prefix) }, prefix };
}

function placesIn(file: AppendFile, sorted: readonly Kept[], prefix: number): Map<number, Kept> {
  const places = new Map<number, Kept>();
  let offset = 0;
  for (const { index, length } of sorted) {
    if (index >= prefix) places.set(index, { index, file, offset, length });
    offset += length + 1;
  }
  return places;
}

/** Puts a file with these lines in the place of another, at once. */
async function rewrite(path: string, lines: readonly Kept[]): Promise<AppendFile> {
  const draft = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    const target = await open(draft, 'wx', 0o644);
    try {
      for (const { file, offset, length } of lines) await target.write(`${await file.read(offset, length)}\n`);
      await target.sync();
    } finally {
      await target.close();
    }
    await rename(draft, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(draft, { force: true });
    throw writeFailed(path, error);
  }
  return await AppendFile.open(path);
}
