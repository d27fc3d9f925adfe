/**
 * What has become of the idempotence keys of a session, known from its log alone: so it holds in any later process, too.
 *
 * Keeps a short entry for each keyed turn. What a turn ended with is read back from the log when somebody asks for it.
 */
import type { LogEvent } from '../../shared/events.ts';
import type { PromptKey } from '../../shared/session-options.ts';

/** `cut`: the turn began and its end is not on record, or is that of a crash. */
export type KeyState = 'unknown' | 'conflict' | 'cut' | 'ended';

interface KeyedTurn {
  readonly turn: number;
  readonly payload: string;
  state: 'cut' | 'ended';
}

export class KeyedTurns {
  readonly #byKey = new Map<string, KeyedTurn>();
  #open: KeyedTurn | undefined;

  /** Takes in every event of the log, stored ones and live ones, in order. */
  observe(event: LogEvent): void {
    if (event.type === 'turn/start') {
      const { turn, key, payload } = event.data;
      this.#open = undefined;
      if (key === undefined || payload === undefined) return;
      this.#open = { turn, payload, state: 'cut' };
      this.#byKey.set(key, this.#open);
    } else if (event.type === 'turn/end' && this.#open?.turn === event.data.turn) {
      if (event.data.reason.kind !== 'interrupted') this.#open.state = 'ended';
      this.#open = undefined;
    }
  }

  stateOf({ id, payload }: PromptKey): KeyState {
    const known = this.#byKey.get(id);
    if (known === undefined) return 'unknown';
    return known.payload === payload ? known.state : 'conflict';
  }

  /** The number of the turn that the key stands for. */
  turnOf({ id }: PromptKey): number | undefined {
    return this.#byKey.get(id)?.turn;
  }
}
