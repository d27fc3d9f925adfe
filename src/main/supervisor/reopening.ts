/**
 * Opens the client's sessions again in a new process, a few at a time, and holds back what is for one that is not open yet. Those that
 * something waits for come first, in the order in which it came; then those that were at work, so that they keep their locks.
 */
import { type LooseFrame, member } from './frames.ts';
import type { Held, KnownSession, KnownSessions } from './known-sessions.ts';
import type { OpenRequest } from './open-requests.ts';

export interface ReopeningParts {
  readonly sessions: KnownSessions;
  /** @param resume params of `session/resume`, as JSON */
  readonly ask: (resume: string, onResponse: (response: LooseFrame) => void) => void;
  /** The session is open: what waited for it, in order. */
  readonly hand: (held: Held, session: KnownSession) => void;
  /** The session cannot be opened. */
  readonly refuse: (request: OpenRequest, error: unknown) => void;
}

/** More at once would only be slower together. */
const mostOpenings = 4;
/** UTF-16 units of lines that wait for their sessions. */
const mostHeld = 32 * 1024 * 1024;

export class Reopening {
  readonly #parts: ReopeningParts;
  #eager: KnownSession[] = [];
  #wanted: KnownSession[] = [];
  #openings = 0;
  #heldSize = 0;

  constructor(parts: ReopeningParts) {
    this.#parts = parts;
  }

  /** The process is gone, and every session with it. What was held is no more: requests of it are asked again. */
  loseAll(): void {
    this.#eager = this.#parts.sessions.loseAll();
    this.#wanted = [];
    this.#openings = 0;
    this.#heldSize = 0;
  }

  /** Nothing is opened any more. */
  stop(): void {
    this.#eager = [];
    this.#wanted = [];
  }

  /** Holds what is for a session that is not open, and has it opened. False when it was not held, since too much is. */
  hold(held: Held, session: KnownSession): boolean {
    if (this.#heldSize + held.line.length > mostHeld) return false;
    session.held.push(held);
    this.#heldSize += held.line.length;
    if (session.state === 'opening') return true;
    session.state = 'opening';
    this.#wanted.push(session);
    this.openNext();
    return true;
  }

  openNext(): void {
    while (this.#openings < mostOpenings) {
      const session = this.#wanted.shift() ?? this.#eager.pop();
      if (session === undefined) return;
      if (session.state !== 'open' && !session.isAsked && this.#isNeeded(session)) this.#open(session);
    }
  }

  /** Not one that was closed or deleted meanwhile. */
  #isNeeded(session: KnownSession): boolean {
    return session.held.length > 0 || this.#parts.sessions.get(session.id) === session;
  }

  #open(session: KnownSession): void {
    session.state = 'opening';
    session.isAsked = true;
    this.#openings += 1;
    this.#parts.ask(session.resume, (response) => this.#opened(session, response.error));
  }

  #opened(session: KnownSession, error: unknown): void {
    const held = session.held.splice(0);
    const isOpen = error === undefined;
    // Another try is free: what stands in the way may go.
    Object.assign(session, { state: isOpen ? 'open' : 'lost', isAsked: false, active: isOpen } satisfies Partial<KnownSession>);
    if (member(member(error, 'data'), 'code') === 'SESSION_NOT_FOUND') this.#parts.sessions.forget(session.id);
    for (const one of held) {
      this.#heldSize -= one.line.length;
      if (isOpen) this.#parts.hand(one, session);
      else if (one.request !== undefined) this.#parts.refuse(one.request, error);
    }
    this.#openings -= 1;
    this.openNext();
  }
}
