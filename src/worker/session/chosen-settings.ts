/**
 * What is chosen for a session while it runs: its mode, its model, how much that thinks. Whoever chooses, the client or the
 * session itself, does it here: the log first, then the effect. A replayed log brings every choice back.
 */
import type { LogEvent, PermissionMode } from '../../shared/events.ts';
import { allowedChoices, type ChoiceSettings, type Chosen, type SessionChoices } from '../../shared/session-choices.ts';
import type { Journal } from '../agent/journal.ts';
import type { ModelAdapter } from '../model/model-adapter.ts';
import type { SessionPermissions } from '../permission/session-permissions.ts';

/** For what chooses from within the session: main is told, and the client by the event. */
export interface ChoiceControl {
  readonly settings: ChoiceSettings;
  readonly current: Chosen;
  /** @throws ServerError LOG_WRITE_FAILED */
  setMode(mode: PermissionMode): void;
  /** Members that are absent stay as they are. @throws ServerError LOG_WRITE_FAILED */
  setChoices(choices: SessionChoices): void;
}

export interface ChosenSettingsParts {
  readonly settings: ChoiceSettings;
  readonly journal: Pick<Journal, 'append'>;
  readonly permissions: Pick<SessionPermissions, 'mode' | 'setMode'>;
  readonly model: Pick<ModelAdapter, 'choose'>;
  /** Tells main of a choice that it did not make. */
  readonly report: (chosen: Chosen) => void;
}

export class ChosenSettings {
  readonly #parts: ChosenSettingsParts;
  #choices: SessionChoices = {};
  #revision = -1;

  constructor(parts: ChosenSettingsParts) {
    this.#parts = parts;
  }

  get current(): Chosen {
    return { mode: this.#parts.permissions.mode, choices: this.#choices, revision: this.#revision };
  }

  /** The same choices, for a plan that was approved or a command that was typed. */
  get control(): ChoiceControl {
    const { settings, report } = this.#parts;
    const reported = (change: () => void): void => {
      const before = this.#revision;
      change();
      if (this.#revision !== before) report(this.current);
    };
    const current = (): Chosen => this.current;
    return {
      settings,
      get current() {
        return current();
      },
      setMode: (mode) => reported(() => this.setMode(mode)),
      setChoices: (choices) => reported(() => this.setChoices(choices)),
    };
  }

  /** Learns an event of the stored log. The gate learns the mode by itself. */
  observe(event: LogEvent): void {
    if (event.type === 'mode/change') this.#revision = event.seq;
    else if (event.type === 'options/change') this.#take(event.data, event.seq);
  }

  /** @throws ServerError LOG_WRITE_FAILED; the mode is as before then */
  setMode(mode: PermissionMode): void {
    if (mode !== this.#parts.permissions.mode) this.#recordMode(mode);
  }

  /**
   * What a session without a past was made with: on record even where the settings say the same, since a later server may have
   * other ones. @throws ServerError LOG_WRITE_FAILED
   */
  begin(mode: PermissionMode | undefined, choices: SessionChoices): void {
    if (mode !== undefined) this.#recordMode(mode);
    this.setChoices(choices);
  }

  /** What is not offered is left out. @throws ServerError LOG_WRITE_FAILED; all is as before then */
  setChoices(choices: SessionChoices): void {
    const changed = Object.entries(allowedChoices(this.#parts.settings, choices)).filter(
      ([name, value]) => this.#choices[name as keyof SessionChoices] !== value,
    );
    if (changed.length === 0) return;
    const data: SessionChoices = Object.fromEntries(changed);
    const { seq } = this.#parts.journal.append({ type: 'options/change', data });
    this.#take(data, seq);
  }

  #recordMode(mode: PermissionMode): void {
    const { seq } = this.#parts.journal.append({ type: 'mode/change', data: { mode } });
    this.#parts.permissions.setMode(mode);
    this.#revision = seq;
  }

  #take(change: SessionChoices, seq: number): void {
    this.#choices = allowedChoices(this.#parts.settings, { ...this.#choices, ...change });
    this.#parts.model.choose?.(this.#choices);
    this.#revision = seq;
  }
}
