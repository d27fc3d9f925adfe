/**
 * A jobs file: checked whole before anything starts, then read again job by job. Of a job only its id, place and hash are kept
 * in memory, about 250 bytes, so that a file may have a million lines.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServerError } from '../../../shared/errors.ts';
import { quoted } from '../../../shared/quoted.ts';
import { configError } from '../../config/config-error.ts';
import type { Job } from '../job.ts';
import { readAt, scanLines } from '../line-scan.ts';
import { parseJobLine, WrongLine } from './job-schema.ts';
import type { JobSource } from './job-source.ts';
import { PolicyFiles } from './policy-files.ts';

const maxLineBytes = 16 * 1024 * 1024;
const shownProblems = 20;

export interface JobsFileOptions {
  /** Wrong lines are left out instead of refusing the file. */
  readonly skipInvalid: boolean;
  /** What relative paths are relative to where jobs come from a stream. Absolute. */
  readonly cwd: string;
  /** Budgets in dollars are wrong: the agent is this program and knows no prices. */
  readonly noPrices?: boolean;
}

/**
 * @throws ServerError CONFIG_INVALID when the file cannot be read, has no job, or (unless such lines are skipped) has a wrong one:
 * the message then has each problem on a line of its own, with line number and member
 */
export async function openJobsFile(path: string, options: JobsFileOptions): Promise<JobSource> {
  const absolute = resolve(options.cwd, path);
  return await check(await openForReading(absolute), { ...options, name: absolute, baseDir: dirname(absolute) });
}

/** As {@link openJobsFile}, for jobs that come from a pipe: they are put into a file first, which nobody else sees. */
export async function readJobsStream(stream: Readable, options: JobsFileOptions): Promise<JobSource> {
  const path = join(tmpdir(), `dsh-acp-jobs-${randomBytes(8).toString('hex')}.jsonl`);
  await pipeline(stream, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  const file = await openForReading(path);
  await unlink(path);
  return await check(file, { ...options, name: 'stdin', baseDir: options.cwd });
}

async function openForReading(path: string): Promise<FileHandle> {
  try {
    const file = await open(path, 'r');
    if ((await file.stat()).isFile()) return file;
    await file.close();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
    throw configError({ key: 'jobs file', expected: `a readable file at ${path}, but opening it gave ${code}`, where: 'command line' });
  }
  throw configError({ key: 'jobs file', expected: `a file at ${path}, which is something else`, where: 'command line' });
}

interface Checked extends JobsFileOptions {
  readonly name: string;
  readonly baseDir: string;
}

async function check(file: FileHandle, options: Checked): Promise<JobSource> {
  try {
    const source = new JobsFile(file, options);
    await source.scan();
    return source;
  } catch (error) {
    await file.close();
    throw error;
  }
}

class JobsFile implements JobSource {
  readonly name: string;
  readonly problems: string[] = [];
  invalid = 0;
  fileHash: string | undefined;
  readonly #file: FileHandle;
  readonly #options: Checked;
  readonly #policies = new PolicyFiles();
  readonly #byId = new Map<string, number>();
  readonly #ids: string[] = [];
  readonly #hashes: string[] = [];
  readonly #lines: number[] = [];
  readonly #offsets: number[] = [];
  readonly #lengths: number[] = [];
  /** By index; only those that are not 0. */
  readonly #priorities = new Map<number, number>();

  constructor(file: FileHandle, options: Checked) {
    this.#file = file;
    this.#options = options;
    this.name = options.name;
  }

  get count(): number {
    return this.#ids.length;
  }

  id(index: number): string {
    return this.#ids[index] ?? '';
  }

  hash(index: number): string {
    return this.#hashes[index] ?? '';
  }

  priority(index: number): number {
    return this.#priorities.get(index) ?? 0;
  }

  indexOf(id: string): number | undefined {
    return this.#byId.get(id);
  }

  async job(index: number): Promise<Job> {
    const [number, offset, length] = [this.#lines[index], this.#offsets[index], this.#lengths[index]];
    if (number === undefined || offset === undefined || length === undefined) throw new Error('there is no such job');
    const changed = new WrongLine(`line ${number} of ${this.name} has changed since it was checked`);
    const text = await readAt(this.#file, offset, length).catch(() => {
      throw changed;
    });
    const job = await this.#parse(text, number);
    if (job.hash !== this.hash(index)) throw changed;
    return job;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async scan(): Promise<void> {
    const whole = createHash('sha256');
    for await (const { number, offset, bytes, tooLong } of scanLines(this.#file, maxLineBytes)) {
      whole.update(bytes).update('\n');
      if (tooLong) this.#wrong(number, `longer than ${maxLineBytes} bytes`);
      else if (bytes.length > 0) await this.#take(bytes.toString('utf8'), number, offset, bytes.length);
    }
    this.fileHash = whole.digest('hex');
    if (this.invalid > 0 && !this.#options.skipInvalid) throw this.#refusal();
    if (this.count === 0) throw configError({ key: 'jobs file', expected: 'at least one job', where: this.name });
  }

  async #take(text: string, number: number, offset: number, length: number): Promise<void> {
    if (text.trim() === '') return;
    try {
      const job = await this.#parse(text, number);
      if (job.budget?.maxCostUsd !== undefined && this.#options.noPrices === true) {
        throw new WrongLine('budget.maxCostUsd: expected prices to count by: set --price-input and --price-output');
      }
      const earlier = this.#byId.get(job.id);
      if (earlier !== undefined) throw new WrongLine(`id: ${quoted(job.id)} is also the id of line ${this.#lines[earlier]}`);
      const index = this.#ids.length;
      this.#byId.set(job.id, index);
      this.#ids.push(job.id);
      this.#hashes.push(job.hash);
      this.#lines.push(number);
      this.#offsets.push(offset);
      this.#lengths.push(length);
      if (job.priority !== 0) this.#priorities.set(index, job.priority);
    } catch (error) {
      if (!(error instanceof WrongLine)) throw error;
      this.#wrong(number, error.message);
    }
  }

  async #parse(text: string, number: number): Promise<Job> {
    return await parseJobLine(text, { number, baseDir: this.#options.baseDir }, this.#policies);
  }

  #wrong(number: number, what: string): void {
    this.invalid += 1;
    if (this.problems.length < shownProblems) this.problems.push(`line ${number}: ${what}`);
  }

  #refusal(): Error {
    const more = this.invalid - this.problems.length;
    const list = [...this.problems, ...(more > 0 ? [`and ${more} more`] : [])].map((problem) => `\n  ${problem}`).join('');
    const lines = this.invalid === 1 ? 'a wrong line' : `${this.invalid} wrong lines`;
    const text = `jobs file: ${lines} in ${this.name}, so nothing was started. Correct them, or give --skip-invalid.${list}`;
    return new ServerError('CONFIG_INVALID', text, { data: { key: 'jobs file', where: this.name } });
  }
}
