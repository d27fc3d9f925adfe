/**
 * The open sessions that are on a thread. There are as many as threads let there be, while thousands may be open: who looks for one
 * that could leave must not go through all of these at each turn.
 */
import type { AttachedSession } from '../threads/attached-session.ts';
import type { Session } from './session.ts';

export class SessionsOnThreads {
  readonly #attached = new Map<Session, AttachedSession>();

  /** Holds the session until it has left this thread, however it does. */
  add(session: Session, attached: AttachedSession): void {
    this.#attached.set(session, attached);
    void attached.departure.then(() => {
      if (this.#attached.get(session) === attached) this.#attached.delete(session);
    });
  }

  /** Those that hold a thread and do not need it now. */
  *idle(): Generator<Session> {
    for (const session of this.#attached.keys()) if (session.isIdleOnThread) yield session;
  }

  /** Of these the one that has been idle longest. */
  idlest(unwilling: ReadonlySet<Session>): Session | undefined {
    let found: Session | undefined;
    for (const session of this.idle()) {
      if (!unwilling.has(session) && (found === undefined || session.idleSince < found.idleSince)) found = session;
    }
    return found;
  }
}
