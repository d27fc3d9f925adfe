/**
 * What main knows of the choices of a session. Answers of its thread and news from it come over two ports in no common order:
 * the newer state wins, whichever comes last.
 */
import type { PermissionMode } from '../../shared/events.ts';
import type { Chosen, SessionChoices } from '../../shared/session-choices.ts';

export class ChosenState {
  #chosen: Chosen;

  /** @param mode in which a session begins that has chosen nothing yet */
  constructor(mode: PermissionMode, choices: SessionChoices = {}) {
    this.#chosen = { mode, choices, revision: -1 };
  }

  get current(): Chosen {
    return this.#chosen;
  }

  /** Says whether the mode is another one now. */
  take(chosen: Chosen): boolean {
    if (chosen.revision < this.#chosen.revision) return false;
    const { mode } = this.#chosen;
    this.#chosen = chosen;
    return chosen.mode !== mode;
  }
}
