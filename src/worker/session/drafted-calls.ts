/**
 * Calls while the model writes them, shown at a pace a person can follow: their name within a tenth of a second, then their
 * arguments as far as they are.
 *
 * Gathers the pieces and looks at them on a timer, so a piece costs one addition. A call whose answer is there before the
 * timer is never shown as a draft: it appears whole. While the client is behind, drafts wait; they say nothing that the call
 * itself will not say.
 */
import { Allow, parse } from 'partial-json';
import type { JsonObject, JsonValue } from '../../shared/errors.ts';
import { isNestedDeeperThan } from '../../shared/framing/nesting-limit.ts';
import type { ArgumentsDraft } from '../../shared/render-intents.ts';
import { noSecrets, type SecretValues } from '../../shared/secret-values.ts';
import type { CallDraft } from '../agent/live-view.ts';

/** Between two looks, so also between two updates of one call. */
const lookEveryMs = 100;
/** UTF-16 units of arguments that are looked at; what comes later shows with the call. */
const longestText = 256 * 1024;
/** The reader of unfinished JSON needs seconds for what is nested ten thousand deep, and holds up every session of the thread. */
const deepestText = 64;
/** A text is read again once it has grown by this part, so that reading costs in all a few times its length. */
const growth = 1 / 8;

export interface DraftedCallsOptions {
  readonly show: (callId: string, name: string, args: ArgumentsDraft) => void;
  /** Whether the client has taken enough for one more update that it can do without. */
  readonly hasRoom: () => boolean;
  /** Are in nothing that is shown. */
  readonly secrets?: SecretValues;
  /** Runs `task` once after `delayMs`; returns what stops it. */
  readonly schedule?: (task: () => void, delayMs: number) => () => void;
}

interface Draft {
  readonly name: string;
  text: string;
  /** Length of the text when it was shown last; below zero before the first time. */
  shown: number;
}

export class DraftedCalls {
  readonly #options: DraftedCallsOptions;
  readonly #schedule: (task: () => void, delayMs: number) => () => void;
  readonly #drafts = new Map<string, Draft>();
  #stopTimer: (() => void) | undefined;

  constructor(options: DraftedCallsOptions) {
    this.#options = options;
    this.#schedule = options.schedule ?? startTimer;
  }

  take(draft: CallDraft): void {
    if (draft.kind === 'named') this.#drafts.set(draft.callId, { name: draft.name, text: '', shown: -1 });
    else {
      const known = this.#drafts.get(draft.callId);
      if (known === undefined || known.text.length >= longestText) return;
      known.text += draft.text;
    }
    this.#stopTimer ??= this.#schedule(this.#look, lookEveryMs);
  }

  /** The answer is there, or was given up: from here on its events tell. */
  clear(): void {
    if (this.#drafts.size > 0) this.#drafts.clear();
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  readonly #look = (): void => {
    this.#stopTimer = undefined;
    const waiting = [...this.#drafts].filter(([, draft]) => draft.text.length > draft.shown);
    const hasRoom = this.#options.hasRoom();
    for (const [callId, draft] of waiting) {
      if (hasRoom && draft.text.length >= draft.shown * (1 + growth)) {
        draft.shown = draft.text.length;
        this.#options.show(callId, draft.name, withoutSecrets(draftOf(draft.text), this.#options.secrets));
      }
    }
    // Whatever still waits was held back here: nothing else would wake it.
    if (waiting.some(([, draft]) => draft.text.length > draft.shown)) this.#stopTimer ??= this.#schedule(this.#look, lookEveryMs);
  };
}

/** What can be read of unfinished arguments. Never throws: what is no object shows nothing. */
function draftOf(text: string): ArgumentsDraft {
  if (isNestedDeeperThan(text, deepestText)) return { members: {} };
  const all = readObject(text, Allow.ALL);
  const members = readObject(text, Allow.OBJ);
  const name = Object.keys(all).find((key) => !Object.hasOwn(members, key));
  const value = name === undefined ? undefined : all[name];
  return name === undefined || value === undefined ? { members } : { members, growing: { name, value } };
}

/** What still grows may end with the beginning of one. */
function withoutSecrets({ members, growing }: ArgumentsDraft, secrets: SecretValues = noSecrets): ArgumentsDraft {
  const clean = { members: secrets.without(members) };
  if (growing === undefined) return clean;
  const { name, value } = growing;
  return { ...clean, growing: { name, value: typeof value === 'string' ? secrets.inUnfinished(value) : secrets.without(value) } };
}

function readObject(text: string, allowed: number): JsonObject {
  try {
    const value = parse(text, allowed) as JsonValue;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    // Nothing there yet, or broken: the call itself will show what came.
    return {};
  }
}

function startTimer(task: () => void, delayMs: number): () => void {
  const timer = setTimeout(task, delayMs);
  return () => clearTimeout(timer);
}
