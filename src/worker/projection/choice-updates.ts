/**
 * What a client is told of the choices of a session: the mode by its own update, and every option by the whole list.
 *
 * Keeps the state that the events add up to, so that each list is right for its place in the log, live and replayed.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { SessionSettings } from '../../shared/config.ts';
import type { EventInput, PermissionMode } from '../../shared/events.ts';
import { configOptions, type SessionChoices } from '../../shared/session-choices.ts';

export type ChoiceViewSettings = Pick<SessionSettings, 'model' | 'models' | 'mode'>;

export class ChoiceUpdates {
  readonly #settings: ChoiceViewSettings;
  readonly #booleans: boolean;
  #mode: PermissionMode;
  #choices: SessionChoices = {};

  /** @param booleans whether the client can show a switch */
  constructor(settings: ChoiceViewSettings, booleans: boolean) {
    this.#settings = settings;
    this.#booleans = booleans;
    this.#mode = settings.mode;
  }

  /** A client without the switch could not bring them back. */
  get showsThoughts(): boolean {
    return !this.#booleans || (this.#choices.showThoughts ?? true);
  }

  /** Takes an event in without showing it. */
  learn(event: EventInput): void {
    if (event.type === 'mode/change') this.#mode = event.data.mode;
    else if (event.type === 'options/change') this.#choices = { ...this.#choices, ...event.data };
  }

  /** The updates of a change, which is taken in first. */
  show(event: Extract<EventInput, { type: 'mode/change' | 'options/change' }>): SessionUpdate[] {
    this.learn(event);
    const options: SessionUpdate = {
      sessionUpdate: 'config_option_update',
      configOptions: configOptions(this.#settings, { mode: this.#mode, choices: this.#choices }, this.#booleans),
    };
    if (event.type !== 'mode/change') return [options];
    return [{ sessionUpdate: 'current_mode_update', currentModeId: event.data.mode }, options];
  }
}
