/**
 * The lasting answers about a session's workspace, as they stand now: another session or server may add one, and the person
 * may take one back, at any time. So the file is looked at before every decision, and read when it has changed.
 */
import { type BigIntStats, statSync } from 'node:fs';
import { grantWords } from '../../shared/permission/grant-words.ts';
import { appendGrant, type GrantsFile, type LastingAnswer, noGrants, readGrants } from '../../shared/permission/grants-file.ts';

/** Keys of calls; see `Grant`. A key is in one of them at most. */
export interface LastingAnswers {
  readonly allowed: ReadonlySet<string>;
  readonly rejected: ReadonlySet<string>;
}

/** What a permission gate needs of them. */
export interface LastingGrants {
  /** Never throws. */
  current(): LastingAnswers;
  /** Says whether the answer is kept, which it is on the disk then. Never rejects. */
  add(answer: LastingAnswer, key: string): Promise<boolean>;
}

export interface WorkspaceGrantsOptions {
  readonly path: string;
  /** The session's canonical working directory. */
  readonly workspace: string;
  /** `refusals` heeds what was refused and allows nothing: for work of which no person sees each call. */
  readonly use: 'answers' | 'refusals';
  /** Takes a line for the operator when the file cannot be relied on. */
  readonly note: (text: string) => void;
}

export const noAnswers: LastingAnswers = { allowed: new Set(), rejected: new Set() };

export class WorkspaceGrants implements LastingGrants {
  readonly #options: WorkspaceGrantsOptions;
  #seen = '';
  #answers = noAnswers;
  #noted: string | undefined;

  constructor(options: WorkspaceGrantsOptions) {
    this.#options = options;
  }

  current(): LastingAnswers {
    const seen = versionOf(this.#options.path);
    if (seen === this.#seen) return this.#answers;
    // The version first: a change between both is then seen by the next look.
    this.#seen = seen;
    this.#answers = this.#learn(seen === '' ? noGrants : readGrants(this.#options.path));
    return this.#answers;
  }

  async add(answer: LastingAnswer, key: string): Promise<boolean> {
    const { path, workspace } = this.#options;
    try {
      const problem = this.#problemOf(readGrants(path));
      if (problem !== undefined) throw new Error(problem);
      await appendGrant(path, { workspace, answer, words: grantWords(key, answer), key, at: new Date().toISOString() });
      return true;
    } catch (error) {
      this.#note(
        `a lasting answer could not be kept and holds for its session alone: ${error instanceof Error ? error.message : 'unknown fault'}`,
      );
      return false;
    }
  }

  /** What was refused stays so also where the rest of the file is in doubt. */
  #learn(file: GrantsFile): LastingAnswers {
    const problem = this.#problemOf(file);
    if (problem !== undefined) {
      this.#note(`the lasting answers about a workspace allow nothing until \`dsh-acp grants\` has mended them: ${problem}`);
    }
    const keysOf = (wanted: LastingAnswer) => [...file.entries.values()].flatMap(({ answer, key }) => (answer === wanted ? [key] : []));
    const allows = problem === undefined && this.#options.use === 'answers';
    return { allowed: new Set(allows ? keysOf('allow') : []), rejected: new Set(keysOf('reject')) };
  }

  #problemOf({ workspace, fault }: GrantsFile): string | undefined {
    return workspace === undefined || workspace === this.#options.workspace ? fault : 'it speaks of another workspace';
  }

  #note(text: string): void {
    if (text === this.#noted) return;
    this.#noted = text;
    this.#options.note(text);
  }
}

/** Differs after every change: a file only grows, and a new one is another. Empty where there is none. */
function versionOf(path: string): string {
  let stats: BigIntStats | undefined;
  try {
    stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // Reading says why it cannot be had.
    return 'unknown';
  }
  return stats === undefined ? '' : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
}
