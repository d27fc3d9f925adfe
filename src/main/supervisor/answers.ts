/**
 * What the supervisor answers in the place of a server process that is gone. Each says what is known, and no more.
 */
import type { JsonObject } from '../../shared/errors.ts';
import { errorLine, isPlain, member, resultLine } from './frames.ts';
import type { OpenRequest } from './open-requests.ts';
import type { ChildEnd } from './server-child.ts';

/** A request that each process dies of must not take the server down for good. */
const mostTries = 3;

/** The answer that a request gets now that its process has died; `undefined` for one that is asked again. */
export function answerAtDeath(request: OpenRequest, end: ChildEnd): string | undefined {
  if (request.cancelled) return cancelledAnswer(request);
  const { tries, line, repeatable, shown } = request;
  const safe = tries === 0 || (repeatable && !shown && tries < mostTries);
  return safe && line !== undefined ? undefined : restartError(request, wordsOf(end));
}

/** The client wants it ended, and no process of now has it. */
export function cancelledAnswer({ id, method }: OpenRequest): string {
  if (method === 'session/prompt') return resultLine(id, { stopReason: 'cancelled' });
  return errorLine(id, 'REQUEST_CANCELLED', 'The request was cancelled before a server process had done it.');
}

/** The server was started again, and its log says that the turn began and did not end. */
export function cutTurnAnswer(request: OpenRequest, error: unknown): string {
  if (request.cancelled) return cancelledAnswer(request);
  const data = member(error, 'data');
  // `stored` speaks of the client's own key.
  const { stored: _stored, ...known } = isPlain(data) ? (data as JsonObject) : {};
  return restartError(request, request.end === undefined ? 'ended' : wordsOf(request.end), known);
}

/** More waits for sessions that are being opened again than is kept. */
export function notKeptError({ id }: OpenRequest): string {
  return errorLine(id, 'SERVER_RESTARTED', 'The server process was started again, and too much waits until its sessions are open.');
}

/** No process will come that could answer. */
export function givenUpError(request: OpenRequest, end: ChildEnd): string {
  return restartError(request, `${wordsOf(end)}, and is not started again,`);
}

/** The client went before a process was given the request. */
export function leavingAnswer(request: OpenRequest): string {
  if (request.method === 'session/prompt') return resultLine(request.id, { stopReason: 'cancelled' });
  return errorLine(request.id, 'SHUTTING_DOWN', 'The input has ended, so the server takes no new work.');
}

export function doubleError(id: unknown): string {
  return errorLine(id, 'INVALID_REQUEST', 'Invalid request: a request with this id is still open.');
}

export function wordsOf({ code, signal, silentMs }: ChildEnd): string {
  if (silentMs !== undefined) return `did not react for ${Math.round(silentMs / 1000)} s and was ended`;
  return signal === null ? `ended with code ${String(code)}` : `was ended by ${signal}`;
}

function restartError({ id, sessionId, method }: OpenRequest, how: string, known: JsonObject = {}): string {
  const when = method === 'session/prompt' ? 'in the middle of this turn' : `before it answered ${method}`;
  const data = { ...known, ...(sessionId === undefined ? {} : { sessionId }) };
  return errorLine(id, 'SERVER_RESTARTED', `The server process ${how} ${when}.`, data);
}
