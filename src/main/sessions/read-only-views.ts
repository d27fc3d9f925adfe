/**
 * Sessions that are open on this connection only to be looked at: their logs, sent as updates and then followed. Another
 * server may be writing them, or nobody may; nothing here takes a lock or writes.
 */
import { fromWireError, ServerError } from '../../shared/errors.ts';
import type { Chosen } from '../../shared/session-choices.ts';
import type { AttachedSession } from '../threads/attached-session.ts';
import type { SessionIdentity, SessionParts } from './session-parts.ts';

export class ReadOnlyViews {
  readonly #parts: SessionParts;
  readonly #open = new Map<string, AttachedSession>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /**
   * Sends the log as it is now, and what is added to it from then on until {@link close}. Fulfils with what is chosen there
   * behind the last update of the former.
   *
   * @throws ServerError OVERLOADED, ATTACH_FAILED, LOG_CORRUPT, LOG_VERSION, THREAD_LOST; nothing stays open then
   */
  async open(identity: SessionIdentity): Promise<Chosen> {
    this.#refuseLastThread();
    const attached = await this.#attach(identity);
    const { completions } = this.#parts.threads;
    const { requestId, end } = completions.expectLoad();
    try {
      await attached.call((api) => api.replay(requestId));
      const outcome = await attached.orDeparture(end);
      if ('kind' in outcome) throw new ServerError('THREAD_LOST', 'The thread ended while the session was being shown.');
      if (!outcome.ok) throw fromWireError(outcome.error);
      return outcome.chosen;
    } catch (error) {
      await this.close(identity.id);
      throw error;
    } finally {
      completions.forget(requestId);
    }
  }

  /** Stops following; fulfils when the thread has forgotten it. Unknown ids are closed already. */
  async close(id: string): Promise<void> {
    const attached = this.#open.get(id);
    if (attached === undefined) return;
    await attached.call((api) => api.dispose()).catch(() => undefined);
    await attached.departure;
    this.#open.delete(id);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.close(id)));
  }

  /** Attached, it holds a thread for as long as it is open; where threads are not shared it must hold a turn's slot, too. */
  async #attach(identity: SessionIdentity): Promise<AttachedSession> {
    const { threads, admission, config, makeRoom } = this.#parts;
    const unwilling = new Set<never>();
    const attach = async (): Promise<AttachedSession> => {
      for (let room = makeRoom(unwilling); room !== undefined; room = makeRoom(unwilling)) await room;
      const { id, ...place } = identity;
      const attached = await threads.attach({ sessionId: id, ...place, readOnly: true });
      this.#open.set(id, attached);
      return attached;
    };
    if (config.isolation !== 'strict') return await attach();
    return await new Promise((resolve, reject) => {
      const held = async (): Promise<void> => {
        const attached = await attach();
        resolve(attached);
        await attached.departure;
      };
      admission.admit(held).catch(reject);
    });
  }

  #refuseLastThread(): void {
    const { isolation, maxThreads } = this.#parts.config;
    if (isolation !== 'strict' || this.#open.size + 1 < maxThreads) return;
    const message = 'The last thread is kept for turns: with strict isolation every session that is looked at holds one.';
    throw new ServerError('OVERLOADED', message, { data: { open: this.#open.size } });
  }
}
