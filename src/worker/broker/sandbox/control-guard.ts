/**
 * What a contained command has made that other programs trust. What was there is held by mounts; what was not could not be, so it is looked for once the
 * command is over. Where nobody was asked about the command it is moved out of the workspace, and what it replaced put back; else it is told.
 */
import { basename, dirname, relative } from 'node:path';
import type { ControlNews, MovedFile } from '../../../shared/broker-protocol.ts';
import { isInside } from '../../../shared/path-inside.ts';
import { type ControlState, newOffences, type Offence, readControlState } from './control-state.ts';
import { DirectoryHandle } from './directory-handle.ts';
import type { GitSearch } from './git-search.ts';
import type { Quarantine } from './quarantine.ts';

export interface ControlGuardParts {
  /** Canonical. */
  readonly roots: readonly string[];
  /** Directories of git's outside of the roots that the command may write in. Canonical. */
  readonly gitElsewhere: readonly string[];
  /** Canonical paths in which nothing is held. */
  readonly opened: readonly string[];
  readonly search: GitSearch;
  readonly quarantine: Quarantine;
  /** Nobody was asked about the command. */
  readonly unasked: boolean;
}

const mostNamed = 8;
/** More are left where they are until the next look. */
const mostMoved = 256;

export class ControlGuard {
  readonly #parts: ControlGuardParts;
  #before: ControlState;

  private constructor(parts: ControlGuardParts, before: ControlState) {
    this.#parts = parts;
    this.#before = before;
  }

  /** @param dotGits `.git` entries as they are now */
  static async begin(parts: ControlGuardParts, dotGits: readonly string[]): Promise<ControlGuard> {
    return new ControlGuard(parts, await readControlState({ roots: parts.roots, dotGits, elsewhere: parts.gitElsewhere }));
  }

  /** What is new since the begin or the last call. Never rejects. */
  async news(): Promise<ControlNews> {
    const { roots, search, gitElsewhere, opened } = this.#parts;
    const dotGits = await Promise.all(roots.map((root) => search.find(root)));
    const after = await readControlState({ roots, dotGits: [...new Set(dotGits.flat())], elsewhere: gitElsewhere });
    const offences = await newOffences(this.#before, after, opened);
    const moved: MovedFile[] = [];
    const told: string[] = [];
    for (const offence of offences.slice(0, mostMoved)) {
      const to = this.#mustGo(offence) ? await this.#moveOut(offence) : undefined;
      if (to === undefined) told.push(offence.path);
      else moved.push({ path: offence.path, to });
    }
    // What is left stays known, and is told once.
    this.#before = offences.length > mostMoved ? this.#before : after;
    return {
      ...(told.length === 0 ? {} : { controlFiles: told.slice(0, mostNamed) }),
      ...(moved.length === 0 ? {} : { movedFiles: moved.slice(0, mostNamed) }),
    };
  }

  /** A `commondir` in a repository's own directory has no use, and would have git take settings and hooks from wherever it names. */
  #mustGo({ path }: Offence): boolean {
    return this.#parts.unasked || basename(path) === 'commondir';
  }

  /** @returns where it is now; `undefined` where it could not be moved */
  async #moveOut({ path, former, harmless }: Offence): Promise<string | undefined> {
    const { roots, gitElsewhere, quarantine } = this.#parts;
    const base = [...roots, ...gitElsewhere].find((directory) => isInside(directory, path) && directory !== path);
    if (base === undefined) return undefined;
    const name = basename(path);
    const names = relative(base, dirname(path))
      .split('/')
      .filter((one) => one !== '');
    const root = await DirectoryHandle.open(base).catch(() => undefined);
    const parent = await root?.below(names);
    try {
      if (parent === undefined) return undefined;
      const to = await quarantine.take(parent, name);
      if (former?.link !== undefined) await parent.link(name, former.link);
      else if (former?.text !== undefined) await parent.write(name, former.text);
      else if (harmless !== undefined) await parent.write(name, harmless);
      return to;
    } catch {
      return undefined; // Told, then: it is still there.
    } finally {
      await parent?.close();
      await root?.close();
    }
  }
}
