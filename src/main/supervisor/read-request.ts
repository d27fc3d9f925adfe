/**
 * What a supervisor makes of a request of the client before it is passed on: what it must remember, and the few words it adds, so
 * that asking twice does no more than asking once.
 */
import { v7 as uuidv7 } from 'uuid';
import { supervisorMeta } from '../../shared/supervised.ts';
import { extensionName } from '../acp/meta/extension.ts';
import { isNestedDeeperThan } from '../../shared/framing/nesting-limit.ts';
import { isPlain, lineWithMeta, type LooseFrame, member, parseFrame } from './frames.ts';
import { openingMethods, resumeOf } from './known-sessions.ts';
import type { NewRequest } from './open-requests.ts';

/** What a line of the client is to a supervisor. `noise` is whatever the server answers, or not, without our help. */
export type ClientLine =
  /** `id` as far as there is one: an answer to it could be taken for that of the open request under the same id. */
  | { readonly kind: 'noise'; readonly id?: unknown }
  | { readonly kind: 'answer'; readonly frame: LooseFrame }
  | { readonly kind: 'notification'; readonly frame: LooseFrame }
  | { readonly kind: 'request'; readonly frame: LooseFrame & { readonly method: string } };

/** As the server has it; what is deeper it refuses, whatever it is. */
const deepestFrame = 1000;

export function readLine(line: string): ClientLine {
  const frame = isNestedDeeperThan(line, deepestFrame) ? undefined : parseFrame(line);
  if (frame === undefined) return { kind: 'noise' };
  const { id, method } = frame;
  if (method === undefined) return { kind: id === undefined ? 'noise' : 'answer', frame };
  if (typeof method !== 'string') return { kind: 'noise', id };
  if (id === undefined) return { kind: 'notification', frame };
  return id === null || typeof id === 'string' || Number.isFinite(id)
    ? { kind: 'request', frame: { ...frame, method } }
    : { kind: 'noise' };
}

/** @param newKey makes an idempotence key that no client would use */
export function readRequest(frame: LooseFrame & { readonly method: string }, line: string, newKey: () => string): NewRequest {
  const { id, method, params } = frame;
  const sessionId = member(params, 'sessionId');
  const request = {
    id,
    method: method.slice(0, longestMethod),
    sessionId: typeof sessionId === 'string' ? sessionId : undefined,
    resume: openingMethods.has(method) ? resumeOf(params) : undefined,
  };
  switch (method) {
    case 'session/prompt': {
      const repeatable = !isCommand(params);
      const extension = member(member(params, '_meta'), extensionName) ?? {};
      if (!isPlain(extension) || extension['key'] !== undefined) return { ...request, repeatable, ownKey: false, line };
      const keyed = lineWithMeta(frame, extensionName, { ...extension, key: newKey() });
      return { ...request, repeatable: repeatable && keyed !== undefined, ownKey: keyed !== undefined, line: keyed ?? line };
    }
    case 'session/new':
    case 'session/fork': {
      // With its id said, asking again replaces what the first try has left.
      const madeId = uuidv7();
      const named = lineWithMeta(frame, supervisorMeta, { sessionId: madeId });
      return {
        ...request,
        ...(named === undefined ? {} : { madeId }),
        repeatable: named !== undefined,
        ownKey: false,
        line: named ?? line,
      };
    }
    default:
      return { ...request, repeatable: !method.startsWith('_session/'), ownKey: false, line };
  }
}

/** Enough for any there is; it is named in an error. */
const longestMethod = 60;

/** What the server may take for a `/command`: that is no turn, so the log does not know it by a key. */
function isCommand(params: unknown): boolean {
  const prompt = member(params, 'prompt');
  if (!Array.isArray(prompt)) return false;
  const text = prompt.map((block) => member(block, 'text')).find((one) => typeof one === 'string');
  return typeof text === 'string' && text.trimStart().startsWith('/');
}
