/**
 * What a seed makes happen: the server's settings, and a list of acts of client, machine and disk with their times. Plain data, so that
 * acts can be left out while a failure is made smaller.
 */
import { Random } from './random.ts';

export type Act = { readonly at: number; readonly session: number } & (
  | { readonly kind: 'new' | 'cancel' | 'close' | 'load' | 'resume' | 'park' }
  | { readonly kind: 'prompt'; readonly request: number; readonly text: string; readonly key?: string; readonly payload?: string }
  | { readonly kind: 'steer'; readonly request: number; readonly text: string }
  | { readonly kind: 'abort'; readonly request: number }
  | { readonly kind: 'mode'; readonly mode: 'ask' | 'full-access' | 'read-only' | 'accept-edits' }
  /** The session's thread dies after so many more of its calls to the outside. */
  | { readonly kind: 'kill-thread'; readonly calls: number }
  | { readonly kind: 'full-disk'; readonly code: 'ENOSPC' | 'EIO'; readonly forMs: number }
  | { readonly kind: 'failing-sync' }
  /** The machine loses its power after so many more calls of the server; a new server starts on what the disk has left. */
  | { readonly kind: 'power-cut'; readonly calls: number; readonly reopen: 'load' | 'resume' }
  | { readonly kind: 'end-of-input' }
);

export interface Plan {
  readonly seed: number;
  readonly settings: {
    readonly isolation: 'dedicated' | 'strict' | 'shared';
    readonly maxThreads: number;
    readonly maxRunningTurns: number;
    readonly overlap: 'queue' | 'reject';
    readonly maxQueuedPrompts: number;
    readonly parkAfterMs: number;
    readonly permissionTimeoutMs: number;
    readonly paceMs: number;
    readonly mode: 'ask' | 'full-access';
    readonly maxParallelToolCalls: number;
    readonly profile: 'editor' | 'automation';
    /** How the client behaves when it is asked. */
    readonly answers: readonly ('allow' | 'reject' | 'cancelled' | 'garbage' | 'never' | 'late')[];
  };
  readonly acts: readonly Act[];
}

export function planOf(seed: number): Plan {
  const random = new Random(seed);
  const sessions = random.int(1, random.chance(0.3) ? 6 : 3);
  const span = random.pick([300, 1500, 6000]);
  const settings: Plan['settings'] = {
    isolation: random.pick(['dedicated', 'dedicated', 'strict', 'shared']),
    maxThreads: random.int(1, 3),
    maxRunningTurns: random.int(1, 4),
    overlap: random.chance(0.8) ? 'queue' : 'reject',
    maxQueuedPrompts: random.int(1, 4),
    parkAfterMs: random.chance(0.5) ? random.int(250, 800) : 0,
    permissionTimeoutMs: random.chance(0.5) ? 0 : random.int(100, 3000),
    paceMs: random.pick([0, 1, 5]),
    mode: random.chance(0.6) ? 'ask' : 'full-access',
    maxParallelToolCalls: random.int(1, 4),
    profile: random.chance(0.7) ? 'editor' : 'automation',
    answers: random.pick([
      ['allow'],
      ['allow', 'allow', 'allow', 'reject', 'late'],
      ['allow', 'allow', 'cancelled', 'garbage', 'never', 'late', 'reject'],
    ] as const),
  };
  const acts: Act[] = [];
  for (let session = 0; session < sessions; session += 1) acts.push({ at: random.int(0, 20), session, kind: 'new' });
  let request = 0;
  const prompts = random.int(1, 4 + 2 * sessions);
  for (let i = 0; i < prompts; i += 1) {
    const session = random.int(0, sessions - 1);
    request += 1;
    const at = 30 + random.int(0, span);
    const steered = settings.profile === 'editor' && random.chance(0.12);
    const text = script(random, `S${session}P${request}`);
    if (steered) acts.push({ at, session, kind: 'steer', request, text });
    else if (random.chance(0.25)) {
      const key = `k${request}`;
      acts.push({ at, session, kind: 'prompt', request, text, key, payload: key });
      for (let n = random.int(0, 2); n > 0; n -= 1) {
        request += 1;
        acts.push({
          at: at + random.pick([0, 1, 30, 400, 2000]) + random.int(0, 3),
          session,
          kind: 'prompt',
          request,
          text,
          key,
          payload: key,
        });
      }
    } else acts.push({ at, session, kind: 'prompt', request, text });
    if (random.chance(0.25)) acts.push({ at: at + random.pick([0, 1, 5, 60, 500]) + random.int(0, 9), session, kind: 'cancel' });
    if (random.chance(0.12)) acts.push({ at: at + random.pick([0, 2, 40, 500]) + random.int(0, 9), session, kind: 'abort', request });
  }
  const some = (most: number, probability: number, make: (at: number, session: number) => Act | Act[]): void => {
    if (!random.chance(probability)) return;
    for (let n = random.int(1, most); n > 0; n -= 1)
      acts.push(...[make(30 + random.int(0, span + 200), random.int(0, sessions - 1))].flat());
  };
  some(2, 0.3, (at, session) => ({ at, session, kind: 'mode', mode: random.pick(['ask', 'full-access', 'read-only', 'accept-edits']) }));
  some(2, 0.35, (at, session) => ({ at, session, kind: 'kill-thread', calls: random.int(1, 60) }));
  some(2, 0.2, (at, session) => ({
    at,
    session,
    kind: 'full-disk',
    code: random.pick(['ENOSPC', 'EIO']),
    forMs: random.pick([1, 20, 300]),
  }));
  some(1, 0.15, (at, session) => ({ at, session, kind: 'failing-sync' }));
  some(2, 0.2, (at, session) => ({ at, session, kind: 'park' }));
  some(2, 0.3, (at, session) => [
    { at, session, kind: 'close' },
    { at: at + random.pick([0, 1, 50, 700]), session, kind: random.pick(['load', 'resume']) },
  ]);
  some(1, 0.2, (at, session) => ({ at, session, kind: 'power-cut', calls: random.int(1, 80), reopen: random.pick(['load', 'resume']) }));
  const last = random.chance(0.5) ? random.int(30, span + 300) : span + 30_000;
  acts.push({ at: last, session: -1, kind: 'end-of-input' });
  // Stable: acts of one moment keep their order.
  acts.sort((a, b) => a.at - b.at);
  return { seed, settings, acts };
}

/** A prompt for the scripted model in which every word and every command says whose it is. */
function script(random: Random, tag: string): string {
  const lines: string[] = [`say ${tag} begins`];
  let tools = 0;
  const line = (): string => {
    switch (random.int(0, 7)) {
      case 0:
        return `think ${tag} ${'hm '.repeat(random.int(1, 6)).trim()}`;
      case 1:
        return `repeat ${random.int(1, 40)} ${tag}`;
      case 2:
        return `wait ${random.pick([1, 20, 150, 900])}`;
      case 3:
        return `fail ${random.pick(['SERVER', 'TRANSPORT', 'RATE_LIMIT', 'STREAM_CLOSED', 'AUTH'])} ${random.int(1, 3)}`;
      default: {
        tools += 1;
        const beside = tools > 1 && random.chance(0.5) ? '& ' : '';
        const ms = random.pick([0, 1, 10, 80, 600]);
        return `${beside}run work ${tag}T${tools} ${ms} ${random.pick(['ok', 'ok', 'ok', 'fail', 'stubborn'])}`;
      }
    }
  };
  for (let n = random.int(0, 6); n > 0; n -= 1) lines.push(line());
  return lines.join('\n');
}
