/**
 * Lines for stderr. Quiet by default, since several editors show every stderr line as an error.
 */
import type { LogLevel } from '../shared/config.ts';
import { noSecrets, type SecretValues } from '../shared/secret-values.ts';

const rank: Record<LogLevel, number> = { silent: 0, error: 1, warn: 2, info: 3, debug: 4 };

export class Diagnostics {
  readonly #level: number;
  readonly #secrets: SecretValues;
  readonly #write: (line: string) => void;

  constructor(level: LogLevel, write: (line: string) => void = writeToStderr, secrets: SecretValues = noSecrets) {
    this.#secrets = secrets;
    this.#level = rank[level];
    this.#write = write;
  }

  /** Sends what libraries print through `console` the same way: the SDK reports each bad notification with it. */
  adoptConsole(): void {
    const print = (...parts: unknown[]): void => this.log('debug', parts.map(String).join(' '));
    Object.assign(console, { log: print, info: print, warn: print, error: print, debug: print });
  }

  /** Writes one line when `level` is within what was asked for. Never pass a key, a header or request params. */
  log(level: Exclude<LogLevel, 'silent'>, message: string): void {
    if (rank[level] > this.#level) return;
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
