/**
 * The commands of a session that Markdown files make, as they are when somebody asks for them.
 */
import { type CommandFile, type CommandPlaces, findCommandFiles } from '../../shared/commands/command-files.ts';
import { abortableSleep } from '../agent/abortable-sleep.ts';

/** A file system that takes longer has no commands for now. */
const longestSearchMs = 2000;

export class FileCommands {
  readonly #places: CommandPlaces;
  #found: readonly CommandFile[] = [];
  /** One at a time: a file system that hangs must not be asked again and again. */
  #search: Promise<readonly CommandFile[]> | undefined;

  constructor(places: CommandPlaces) {
    this.#places = places;
  }

  /** All of them; none when the search takes too long or `signal` aborts. */
  async list(signal: AbortSignal): Promise<readonly CommandFile[]> {
    this.#search ??= this.#searchNow();
    const done = new AbortController();
    const late = abortableSleep(longestSearchMs, AbortSignal.any([signal, done.signal])).then(() => []);
    const found = await Promise.race([this.#search, late]);
    done.abort();
    return found;
  }

  async find(name: string, signal: AbortSignal): Promise<CommandFile | undefined> {
    return (await this.list(signal)).find((file) => file.name === name);
  }

  async #searchNow(): Promise<readonly CommandFile[]> {
    this.#found = await findCommandFiles(this.#places, this.#found);
    this.#search = undefined;
    return this.#found;
  }
}
