/**
 * Where jobs come from: what must be known of all of them before anything starts, and each whole job when its turn comes.
 */
import type { Job } from '../job.ts';

/** Jobs by their index from 0, in the order of the file. */
export interface JobSource {
  /** For people: the path of the file, or what else they came from. */
  readonly name: string;
  readonly count: number;
  /** SHA-256 of the whole file; absent for a job from the command line. */
  readonly fileHash: string | undefined;
  /** What was left out as wrong, in words; the first of them. */
  readonly problems: readonly string[];
  /** How many lines were left out. */
  readonly invalid: number;
  id(index: number): string;
  hash(index: number): string;
  priority(index: number): number;
  indexOf(id: string): number | undefined;
  /** @throws WrongLine when the file has changed since it was checked */
  job(index: number): Promise<Job>;
  close(): Promise<void>;
}

/** The one job that was written on the command line. */
export function singleJob(job: Job): JobSource {
  return {
    name: 'the command line',
    count: 1,
    fileHash: undefined,
    problems: [],
    invalid: 0,
    id: () => job.id,
    hash: () => job.hash,
    priority: () => job.priority,
    indexOf: (id) => (id === job.id ? 0 : undefined),
    job: async () => await Promise.resolve(job),
    close: async () => await Promise.resolve(),
  };
}
