/**
 * A session on its thread, as main sees it: the calls it takes and the promise of its leaving.
 *
 * A comlink call to a dead thread never settles by itself; our endpoint rejects it when the port closes. A call that is open
 * when the session leaves would not settle either: releasing the proxy forgets it. So every call ends with the departure.
 */
import type { MessagePort } from 'node:worker_threads';
import { portEndpoint, type Remote, releaseProxy, wrap } from '../../shared/comlink.ts';
import { ServerError } from '../../shared/errors.ts';
import type { Chosen } from '../../shared/session-choices.ts';
import type { SessionApi } from '../../shared/thread-protocol.ts';
import type { ThreadLane } from './thread-lane.ts';

/** How a session left its thread: as asked, or with the thread under it. */
export type Departure =
  | { readonly kind: 'left' }
  | { readonly kind: 'lost'; readonly reason: string /** The thread was ended for what it held. */; readonly forMemory?: true };

export class AttachedSession {
  readonly sessionId: string;
  readonly lane: ThreadLane;
  /** As it came out of its log. */
  readonly chosen: Chosen;
  /** Never rejects. After a loss it fulfils only once the thread's last updates have been taken. */
  readonly departure: Promise<Departure>;
  readonly #api: Remote<SessionApi>;
  readonly #port: MessagePort;
  /** Told of the departure; empty while nobody waits. */
  readonly #waiting = new Set<(how: Departure) => void>();
  #departed: Departure | undefined;

  constructor(
    started: { readonly sessionId: string; readonly chosen: Chosen },
    lane: ThreadLane,
    port: MessagePort,
    departure: Promise<Departure>,
  ) {
    this.sessionId = started.sessionId;
    this.chosen = started.chosen;
    this.lane = lane;
    this.#port = port;
    this.#api = wrap<SessionApi>(portEndpoint(port));
    this.departure = departure.then((how) => {
      this.#departed = how;
      this.#api[releaseProxy]();
      this.#port.close();
      for (const tell of this.#waiting) tell(how);
      return how;
    });
  }

  get departed(): Departure | undefined {
    return this.#departed;
  }

  /**
   * What comes first, the end of `work` or the departure.
   *
   * In place of `Promise.race`, by which the promise of the departure would hold the outcome of every race, each turn's text among
   * them, for as long as the session is attached.
   */
  orDeparture<T>(work: Promise<T>): Promise<T | Departure> {
    if (this.#departed !== undefined) return Promise.race([work, Promise.resolve(this.#departed)]);
    return new Promise((resolve, reject) => {
      this.#waiting.add(resolve);
      void work.then(resolve, reject).then(() => this.#waiting.delete(resolve));
    });
  }

  /** Calls the session; `undefined` when its thread ended before the answer. Rejects with the call's own ServerError. */
  async call<T>(use: (api: Remote<SessionApi>) => Promise<T>): Promise<T | undefined> {
    if (this.#departed !== undefined) return undefined;
    try {
      const answer = await this.orDeparture(use(this.#api).then((value) => ({ value })));
      return 'value' in answer ? answer.value : undefined;
    } catch (error) {
      // The port closes before the thread's last messages have been taken: the departure tells when that is done.
      if (!(error instanceof ServerError) || error.code !== 'THREAD_LOST') throw error;
      await this.departure;
      return undefined;
    }
  }
}
