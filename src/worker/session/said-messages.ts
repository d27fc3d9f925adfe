/**
 * The ids of what was said to a session, from its log and from what waits for its next step: a client that does not know whether
 * its message arrived may send it again, and it is not said twice.
 */
import { ServerError } from '../../shared/errors.ts';
import type { LogEvent } from '../../shared/events.ts';
import type { SteerOutcome } from '../../shared/thread-protocol.ts';

export class SaidMessages {
  readonly #ids = new Set<string>();

  /** Takes in every event of the log, stored ones and live ones. */
  observe(event: LogEvent): void {
    if (event.type === 'command/run' || (event.type === 'user/message' && event.data.source !== 'notice'))
      this.#ids.add(event.data.messageId);
  }

  /** @throws ServerError INVALID_PARAMS when a message of this id was said, or waits */
  refuseKnown(messageId: string | undefined): void {
    if (messageId === undefined || !this.#ids.has(messageId)) return;
    throw new ServerError('INVALID_PARAMS', 'A message with this messageId is part of the session already.', {
      data: { field: 'messageId' },
    });
  }

  /** @throws ServerError as {@link refuseKnown} */
  say(messageId: string, steer: () => SteerOutcome): SteerOutcome {
    this.refuseKnown(messageId);
    const outcome = steer();
    if (outcome === 'injected') this.#ids.add(messageId);
    return outcome;
  }
}
