/**
 * Lines for stderr. Quiet by default, since several editors show every stderr line as an error.
 */
import type { LogLevel } from '../shared/config.ts';
import { SecretValues } from '../shared/secret-values.ts';

const rank: Record<LogLevel, number> = { silent: 0, error: 1, warn: 2, info: 3, debug: 4 };

/** Secrets of sessions that are kept out of lines; those of the oldest go first. */
const mostOfSessions = 384;

export class Diagnostics {
  readonly #level: number;
  readonly #own: readonly string[];
  readonly #ofSessions = new Set<string>();
  /** Made anew for the next line after something was added. */
  #secrets: SecretValues | undefined;
  readonly #write: (line: string) => void;

  /** @param secrets of the server itself; they are in no line */
  constructor(level: LogLevel, write: (line: string) => void = writeToStderr, secrets: readonly string[] = []) {
    this.#own = secrets;
    this.#level = rank[level];
    this.#write = write;
  }

  /** From now on these are in no line either: what a session's client gave it may stand in what its thread dies of. */
  keepOut(secrets: readonly string[]): void {
    for (const secret of secrets) {
      if (this.#ofSessions.has(secret)) continue;
      this.#ofSessions.add(secret);
      this.#secrets = undefined;
    }
    for (const oldest of this.#ofSessions) {
      if (this.#ofSessions.size <= mostOfSessions) break;
      this.#ofSessions.delete(oldest);
    }
  }

  /** Sends what libraries print through `console` the same way: the SDK reports each bad notification with it. */
  adoptConsole(): void {
    const print = (...parts: unknown[]): void => this.log('debug', parts.map(String).join(' '));
    Object.assign(console, { log: print, info: print, warn: print, error: print, debug: print });
  }

  /** Writes one line when `level` is within what was asked for. Never pass a key, a header or request params. */
  log(level: Exclude<LogLevel, 'silent'>, message: string): void {
    if (rank[level] > this.#level) return;
    this.#secrets ??= new SecretValues([...this.#own, ...this.#ofSessions]);
    this.#write(`dsh-acp ${level}: ${this.#secrets.inText(message).replaceAll('\n', ' ')}\n`);
  }
}

/** A client may close stderr: that must not end the process. */
function writeToStderr(line: string): void {
  if (!stderrIsGuarded) {
    stderrIsGuarded = true;
    process.stderr.on('error', () => undefined);
  }
  process.stderr.write(line);
}

let stderrIsGuarded = false;
