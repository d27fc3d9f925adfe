/**
 * Reads back what a turn ended with: the answer to a prompt whose key the session knows, without a turn.
 */
import { ServerError, toWireError } from '../../shared/errors.ts';
import type { LogEvent } from '../../shared/events.ts';
import type { PromptKey } from '../../shared/session-options.ts';
import type { TurnOutcome } from '../../shared/thread-protocol.ts';
import type { KeyedTurns } from './keyed-turns.ts';
import { LastText } from './last-text.ts';
import { turnOutcome } from './turn-outcome.ts';

export interface StoredTurnParts {
  readonly keyedTurns: KeyedTurns;
  /** Reads the whole log. */
  readonly replay: (onEvent: (event: LogEvent) => void) => Promise<void>;
  readonly answersWithText: boolean;
}

/** `undefined` for a key that the session has never seen: its prompt is to be run. Never rejects. */
export function storedTurn(key: PromptKey | undefined, parts: StoredTurnParts): Promise<TurnOutcome> | undefined {
  if (key === undefined) return undefined;
  const state = parts.keyedTurns.stateOf(key);
  if (state === 'unknown') return undefined;
  if (state === 'conflict') return Promise.resolve({ ok: false, error: toWireError(conflict()) });
  return readBack(parts.keyedTurns.turnOf(key), parts);
}

async function readBack(turn: number | undefined, { replay, answersWithText }: StoredTurnParts): Promise<TurnOutcome> {
  const text = new LastText();
  let outcome: TurnOutcome | undefined;
  let here = false;
  try {
    await replay((event) => {
      if (event.type === 'turn/start') here = event.data.turn === turn;
      if (!here) return;
      text.observe(event);
      if (event.type !== 'turn/end') return;
      const said = answersWithText ? text.current : undefined;
      outcome = event.data.reason.kind === 'interrupted' ? cut(event.data.usage, said) : turnOutcome(event.data, said);
    });
    return { ...(outcome ?? cut(undefined, undefined)), stored: true };
  } catch (error) {
    return { ok: false, error: toWireError(error) };
  }
}

function cut(usage: Extract<TurnOutcome, { ok: false }>['usage'], text: string | undefined): TurnOutcome {
  const message = 'The turn of this key was cut short by a crash. It was not run again.';
  return {
    ok: false,
    error: toWireError(new ServerError('TURN_INTERRUPTED', message)),
    ...(usage === undefined ? {} : { usage }),
    ...(text === undefined ? {} : { text }),
  };
}

function conflict(): ServerError {
  return new ServerError('KEY_CONFLICT', 'The prompt has the key of an earlier one of this session, and another content.');
}
