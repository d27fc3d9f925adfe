/**
 * Keeps threads free for sessions that come next: starting one takes some fifty milliseconds, taking a free one ten.
 */
import type { Piscina } from 'piscina';
import type { ServerConfig } from '../../shared/config.ts';
import type { Diagnostics } from '../diagnostics.ts';
import { spareTaskName } from './placement.ts';

/** A thread that starts holds main for some milliseconds and competes for the cores: with the attach, and with what it was done for. */
const delayMs = 25;

export interface SpareThreadsParts {
  readonly config: Pick<ServerConfig, 'isolation' | 'spareThreads' | 'maxThreads'>;
  readonly diagnostics: Diagnostics;
  readonly pool: Pick<Piscina, 'run' | 'threads'>;
  /** Sessions that hold a thread of the pool now. */
  readonly attachedCount: () => number;
}

export class SpareThreads {
  readonly #parts: SpareThreadsParts;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: SpareThreadsParts) {
    this.#parts = parts;
  }

  /** A session has taken a thread: soon another one is started, unless enough are free or there are as many as may be. */
  refillSoon(): void {
    const { isolation, spareThreads } = this.#parts.config;
    if (isolation === 'shared' || spareThreads === 0) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#refill();
    }, delayMs).unref();
  }

  /** No thread is started any more. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** A task that does nothing and that only a free or a new thread may take. */
  #refill(): void {
    const { config, diagnostics, pool, attachedCount } = this.#parts;
    const free = pool.threads.length - attachedCount();
    const missing = Math.min(config.spareThreads - free, config.maxThreads - pool.threads.length);
    if (missing <= 0) return;
    // The free ones take a task each, too.
    for (let tasks = missing + Math.max(0, free); tasks > 0; tasks -= 1) {
      pool.run({ spare: true }, { name: spareTaskName }).catch((error: unknown) => {
        diagnostics.log('debug', `no spare thread: ${String(error)}`);
      });
    }
  }
}
