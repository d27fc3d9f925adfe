/**
 * Where the agent writes what happens: log first, then the client's view. The agent knows neither the file nor ACP.
 */
import type { EventData, EventInput, LogEvent } from '../../shared/events.ts';

export interface Journal {
  /**
   * Appends one event to the log, then shows it. Merged deltas that wait are logged before it, so the log keeps the order
   * in which things happened.
   *
   * @throws ServerError LOG_WRITE_FAILED when the disk refuses; nothing was shown then
   */
  append(event: EventInput): LogEvent;
  /** The same for several events, which are logged all together or not at all, and with less work than one by one. */
  appendAll(events: readonly EventInput[]): LogEvent[];
  /** Shows streamed text at once and logs it merged, at the latest 100 ms later or before the next `append`. */
  delta(chunk: EventData['assistant/chunk']): void;
  /**
   * Fulfils when everything appended so far is on the disk (fdatasync).
   *
   * @throws ServerError LOG_WRITE_FAILED, also when another writer has taken the log over
   */
  barrier(): Promise<void>;
  /**
   * Everything appended so far is on the disk at the latest 100 ms later, without anybody waiting for it. That it failed is told to
   * the next `append` or `barrier`.
   */
  syncSoon(): void;
}
