/**
 * Tells an editor which slash commands its sessions have: right behind the answer that made or opened a session, once more when its
 * first prompt begins (some clients drop what comes before), and whenever the list has changed by then.
 *
 * Files are looked for in the background: nothing waits for a slow disk. Sessions of one workspace that begin prompts together share a
 * search. Sessions of a program have no commands.
 */
import type { AnyMessage, AvailableCommand } from '@agentclientprotocol/sdk';
import type { CommandFile, CommandPlaces } from '../../shared/commands/command-files.ts';
import { builtInCommands, type CommandWords } from '../../shared/commands/command-words.ts';
import type { Session } from '../sessions/session.ts';

type ListedSession = Pick<Session, 'identity' | 'settings'>;

export interface CommandListsParts {
  /** Takes a line for the client, LF included, and puts it behind everything before. */
  readonly write: (line: string) => void;
  readonly isOpen: (session: ListedSession) => boolean;
  readonly findFiles: (places: CommandPlaces, known: readonly CommandFile[]) => Promise<readonly CommandFile[]>;
}

interface Search {
  readonly begin: number;
  readonly files: Promise<readonly CommandFile[]>;
}

interface SessionList {
  files: readonly CommandFile[];
  /** Whose result this session has had. */
  search?: Search;
  /** The files of the list that was sent last. */
  sent?: readonly CommandFile[];
  prompted: boolean;
  searching: boolean;
}

/** How long a search serves sessions that have not had its result. */
const sharedForMs = 1_000;
const mostSearches = 1_000;

export class CommandLists {
  readonly #parts: CommandListsParts;
  readonly #lists = new WeakMap<ListedSession, SessionList>();
  /** The last one in each place. */
  readonly #searches = new Map<string, Search>();
  /** What is to be told once an answer has been written. */
  readonly #behind = new WeakMap<object, ListedSession>();

  constructor(parts: CommandListsParts) {
    this.#parts = parts;
  }

  /** For the answer that makes or opens a session: its list is sent right behind it. Gives the answer back. */
  behind<Answer extends object>(answer: Answer, session: ListedSession): Answer {
    if (session.identity.profile === 'editor') this.#behind.set(answer, session);
    return answer;
  }

  /** To be told of every message to the client, once it is queued for writing. */
  outgoing(message: AnyMessage): void {
    if (!('result' in message) || typeof message.result !== 'object' || message.result === null) return;
    const session = this.#behind.get(message.result);
    if (session === undefined) return;
    this.#send(session);
    void this.#refresh(session);
  }

  /** A prompt of the session has come. */
  promptBegins(session: ListedSession): void {
    if (session.identity.profile !== 'editor') return;
    const list = this.#listOf(session);
    if (!list.prompted) this.#send(session);
    list.prompted = true;
    // The prompt first: the looking costs main a part of a millisecond.
    setImmediate(() => void this.#refresh(session));
  }

  /** Looks for files, one search a session, and sends the list if it is another one now. */
  async #refresh(session: ListedSession): Promise<void> {
    const list = this.#listOf(session);
    if (list.searching) return;
    list.searching = true;
    list.search = this.#searchFor(list, { cwd: session.identity.cwd, userDirectory: session.settings.userCommands });
    list.files = await list.search.files;
    list.searching = false;
    if (!isSame(list.files, list.sent) && this.#parts.isOpen(session)) this.#send(session);
  }

  /** A prompt finds what was there before it, however soon it comes after the session's last one. */
  #searchFor({ search, files }: SessionList, places: CommandPlaces): Search {
    const place = JSON.stringify(places);
    const begin = performance.now();
    const last = this.#searches.get(place);
    if (last !== undefined && last !== search && begin - last.begin < sharedForMs) return last;
    if (this.#searches.size >= mostSearches) this.#searches.clear();
    const next = { begin, files: this.#parts.findFiles(places, files) };
    this.#searches.set(place, next);
    return next;
  }

  #send(session: ListedSession): void {
    const list = this.#listOf(session);
    list.sent = list.files;
    this.#parts.write(lineOf(session, list.files));
  }

  #listOf(session: ListedSession): SessionList {
    let list = this.#lists.get(session);
    if (list === undefined) {
      list = { files: [], prompted: false, searching: false };
      this.#lists.set(session, list);
    }
    return list;
  }
}

/** Whether a client would be shown the same. */
function isSame(files: readonly CommandFile[], sent: readonly CommandFile[] | undefined): boolean {
  if (files.length !== sent?.length) return false;
  return files.every(({ name, description, hint }, at) => {
    const other = sent[at];
    return name === other?.name && description === other.description && hint === other.hint;
  });
}

function lineOf({ identity }: ListedSession, files: readonly CommandFile[]): string {
  const availableCommands = [...builtInCommands, ...files].map(availableCommand);
  const params = { sessionId: identity.id, update: { sessionUpdate: 'available_commands_update', availableCommands } };
  return `${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params })}\n`;
}

function availableCommand({ name, description, hint }: CommandWords): AvailableCommand {
  return { name, description, ...(hint === undefined ? {} : { input: { hint } }) };
}
