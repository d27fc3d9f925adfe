/**
 * Lines for stderr. Quiet by default, since several editors show every stderr line as an error.
 */
import type { LogLevel } from '../shared/config.ts';

const rank: Record<LogLevel, number> = { silent: 0, error: 1, warn: 2, info: 3, debug: 4 };

export class Diagnostics {
  readonly #level: number;
  readonly #write: (line: string) => void;

  constructor(level: LogLevel, write: (line: string) => void = (line) => process.stderr.write(line)) {
    this.#level = rank[level];
    this.#write = write;
  }

  /** Writes one line when `level` is within what was asked for. Never pass a key, a header or request params. */
  log(level: Exclude<LogLevel, 'silent'>, message: string): void {
    if (rank[level] > this.#level) return;
    this.#write(`dsh-acp ${level}: ${message.replaceAll('\n', ' ')}\n`);
  }
}
