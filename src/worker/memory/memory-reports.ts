/**
 * Looks at a session's memory with the heartbeat of its thread: ends a turn that came over the limit, and tells main how large
 * the session is when that has changed much.
 */
import type { SessionMemory } from './session-memory.ts';

/** Main need not know it closer. */
export const reportStepBytes = 1024 * 1024;

export interface MemoryReportParts {
  readonly memory: SessionMemory;
  /** Whether a turn runs. */
  readonly isBusy: () => boolean;
  /** The turn that runs holds too much. */
  readonly onExcess: () => void;
  /** Told in bytes; never more often than the heart beats. */
  readonly report: (bytes: number) => void;
}

export class MemoryReports {
  readonly #parts: MemoryReportParts;
  #wasBusy = false;
  #reported = 0;

  constructor(parts: MemoryReportParts) {
    this.#parts = parts;
  }

  /** One look; also a last one behind a turn, since much may have been let go. */
  beat(): void {
    const isBusy = this.#parts.isBusy();
    if (!isBusy && !this.#wasBusy) return;
    this.#wasBusy = isBusy;
    if (isBusy && this.#parts.memory.isOver) this.#parts.onExcess();
    const { bytes } = this.#parts.memory;
    if (Math.abs(bytes - this.#reported) < reportStepBytes) return;
    this.#reported = bytes;
    this.#parts.report(bytes);
  }
}
