/**
 * Trees of the workspace in a git repository of the session's own, which shares nothing with one of the person's: no index, no
 * configuration, no hooks, no filters. Only the ignore files of the workspace count.
 *
 * Git is asked by argv, through the broker. What it prints is text, so a name that is no UTF-8 is left out.
 */
import { constants } from 'node:fs';
import { access, lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BrokerApi, RunResult } from '../../../shared/broker-protocol.ts';
import { isMissing } from '../../tools/fs-fault.ts';

export interface GitTreeOptions {
  readonly broker: Pick<BrokerApi, 'run'>;
  /** Names the session to the broker. */
  readonly owner: string;
  /** Absolute; made when first needed, together with the directory above it. */
  readonly gitDir: string;
  /** The workspace. Canonical. */
  readonly cwd: string;
  readonly newId: () => string;
  readonly limits?: Partial<TreeLimits>;
}

export interface TreeLimits {
  /** Larger files are not looked at. */
  readonly fileBytes: number;
  /** Files that are new or changed since the last tree. */
  readonly files: number;
  /** Of those together. */
  readonly totalBytes: number;
  /** Of one run of git. */
  readonly timeoutMs: number;
}

export const treeLimits: TreeLimits = { fileBytes: 10 * 1024 * 1024, files: 20_000, totalBytes: 256 * 1024 * 1024, timeoutMs: 20_000 };

/** A file that differs between two trees; relative to the workspace. Only regular files. */
export interface TreeChange {
  readonly path: string;
  /** Permission bits as far as git keeps them; `undefined` where there was no file. */
  readonly modeBefore: number | undefined;
}

/** Why the workspace cannot be looked at, in words that end a sentence. */
export class TreeFault extends Error {}

const keptOutput = 8 * 1024 * 1024;
const ownAttributes = '* -text -filter -ident !eol !working-tree-encoding\n';
const missingMark = '\uFFFD';

export class GitTree {
  readonly #options: GitTreeOptions;
  readonly #limits: TreeLimits;
  #ready = false;
  #bytes = 0;

  constructor(options: GitTreeOptions) {
    this.#options = options;
    this.#limits = { ...treeLimits, ...options.limits };
  }

  /** The tree of now, by its name. @throws TreeFault */
  async write(): Promise<string> {
    if (!this.#ready) await this.#create();
    // A file may go away between the two: then once more.
    await this.#addChanged().catch(() => this.#addChanged());
    return (await this.#git(['write-tree'])).trim();
  }

  /** @throws TreeFault */
  async differences(before: string, after: string): Promise<TreeChange[]> {
    if (before === after) return [];
    const output = await this.#git(['diff-tree', '-r', '-z', '--no-renames', '--no-ext-diff', before, after]);
    const fields = output.split('\0');
    const changes: TreeChange[] = [];
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const [oldMode = '', newMode = ''] = (fields[at] ?? '').replace(/^:/, '').split(' ');
      const path = fields[at + 1] ?? '';
      if (path !== '' && !path.includes(missingMark) && isFileOrNone(oldMode) && isFileOrNone(newMode)) {
        changes.push({ path, modeBefore: oldMode === absent ? undefined : Number.parseInt(oldMode, 8) & 0o777 });
      }
    }
    return changes;
  }

  /** Writes files of a tree below `directory`, which must not be there. @throws TreeFault */
  async extract(tree: string, paths: readonly string[], directory: string): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const place = { workTree: directory, index: `${directory}.index` };
    await this.#withList(paths, (list) => this.#git(['--literal-pathspecs', 'checkout', '-q', '-f', tree, ...list], place));
    await rm(`${directory}.index`, { force: true });
  }

  async #create(): Promise<void> {
    const { gitDir, cwd } = this.#options;
    await mkdir(dirname(gitDir), { recursive: true, mode: 0o700 });
    await this.#git(['init', '-q', '--template=']);
    await mkdir(join(gitDir, 'info'), { recursive: true, mode: 0o700 });
    const exclude = await readFile(join(cwd, '.git', 'info', 'exclude'), 'utf8').catch(() => '');
    await writeFile(join(gitDir, 'info', 'exclude'), exclude, { mode: 0o600 });
    // Before whatever the workspace's own attributes say: a content must come back byte for byte.
    await writeFile(join(gitDir, 'info', 'attributes'), ownAttributes, { mode: 0o600 });
    this.#ready = true;
  }

  async #addChanged(): Promise<void> {
    const changed = await this.#changed();
    if (changed.length === 0) return;
    await this.#withList(changed, (list) => this.#git(['--literal-pathspecs', 'add', '-A', ...list]));
  }

  /** Files that are not as the last tree has them, those that are gone among them. */
  async #changed(): Promise<string[]> {
    const output = await this.#git(['ls-files', '-z', '-o', '-m', '-d', '--exclude-standard']);
    const names = [...new Set(output.split('\0'))].filter((name) => name !== '' && !name.endsWith('/') && !name.includes(missingMark));
    if (names.length > this.#limits.files) throw new TreeFault(`more than ${this.#limits.files} files of the workspace are not ignored`);
    const kept: string[] = [];
    for (const name of names) if (await this.#counts(name)) kept.push(name);
    return kept;
  }

  async #counts(name: string): Promise<boolean> {
    const path = join(this.#options.cwd, name);
    try {
      const stats = await lstat(path);
      if (!stats.isFile() || stats.size > this.#limits.fileBytes) return false;
      await access(path, constants.R_OK);
      this.#bytes += stats.size;
      if (this.#bytes > this.#limits.totalBytes) throw new TreeFault('the files of the workspace are too large together');
      return true;
    } catch (error) {
      if (isMissing(error)) return true;
      if (error instanceof TreeFault) throw error;
      return false; // Not to be read by this user, so not to be kept either.
    }
  }

  /** The file is gone again afterwards: a copied session shares what lies here by hard links. */
  async #withList(paths: readonly string[], use: (args: readonly string[]) => Promise<string>): Promise<void> {
    const { gitDir, newId } = this.#options;
    const file = join(gitDir, `${newId()}.list`);
    try {
      await writeFile(file, paths.join('\0'), { mode: 0o600 });
      await use([`--pathspec-from-file=${file}`, '--pathspec-file-nul']);
    } finally {
      await rm(file, { force: true });
    }
  }

  async #git(args: readonly string[], place: { readonly workTree?: string; readonly index?: string } = {}): Promise<string> {
    const { broker, owner, gitDir, cwd, newId } = this.#options;
    const where = [`--git-dir=${gitDir}`, `--work-tree=${place.workTree ?? cwd}`];
    const result = await broker.run({
      owner,
      runId: newId(),
      command: 'git',
      args: [...neutral, ...where, ...args],
      cwd: place.workTree ?? cwd,
      env: { ...ownEnvironment, GIT_INDEX_FILE: place.index ?? join(gitDir, 'index'), GIT_OBJECT_DIRECTORY: join(gitDir, 'objects') },
      keepBytes: keptOutput,
      timeoutMs: this.#limits.timeoutMs,
    });
    requireSuccess(result);
    return result.stdout.text;
  }
}

const absent = '000000';

/** Links and repositories inside the workspace are left alone. */
function isFileOrNone(mode: string): boolean {
  return mode === absent || mode === '100644' || mode === '100755';
}

const neutral = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.autocrlf=false',
  'core.attributesFile=/dev/null',
  'core.quotePath=false',
  'core.preloadIndex=true',
  'gc.auto=0',
].flatMap((setting) => ['-c', setting]);

/** Whatever the server's own environment says of git holds for the person's repositories. */
const ownEnvironment = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_COUNT: '0',
  GIT_CONFIG_PARAMETERS: '',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_ALTERNATE_OBJECT_DIRECTORIES: '',
  GIT_NAMESPACE: '',
  GIT_OPTIONAL_LOCKS: '1',
  LC_ALL: 'C',
};

function requireSuccess(result: RunResult): void {
  if (result.spawnError !== undefined) throw new TreeFault(`git could not be started (${result.spawnError})`);
  if (result.timedOut) throw new TreeFault('git took too long');
  if (result.stdout.truncated) throw new TreeFault('too much of the workspace has changed at once');
  if (result.exitCode !== 0) throw new TreeFault(`git ended with ${result.exitCode ?? result.signal ?? 'a fault'}`);
}
