/**
 * The start of a run: from a request to a child with a session that waits for its prompt.
 *
 * A failure is an answer, and comes only when nothing of the child is left.
 */
import type { NewSessionRequest } from '@agentclientprotocol/sdk';
import type { ErrorCode } from '../../../shared/errors.ts';
import type { SubagentProvider, SubagentRequest } from '../../../shared/subagent-protocol.ts';
import type { AcpChild } from './acp-child.ts';
import { hurriedGraces } from './child-ending.ts';
import { diagnosticText } from './diagnostic.ts';
import { sessionParams } from './session-request.ts';
import { resolveWorkingDirectory } from './working-directory.ts';

/** What the parent's model reads of a run that was cancelled before it was there; fixed by the specification. */
export const abortedText = 'subagent request was aborted before the ACP child started';

export type ChildStart = { readonly ok: true; readonly child: AcpChild; readonly sessionId: string } | StartFailure;

export interface StartFailure {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly message: string;
}

export interface StartParts {
  readonly request: SubagentRequest;
  readonly provider: SubagentProvider;
  /** A child that has served before, in this directory. */
  readonly takeWarm: (cwd: string) => AcpChild | undefined;
  /** Whatever has to be there before a process is started. Rejects when it cannot be. */
  readonly prepare: () => Promise<unknown>;
  /** Starts a process; a sentence instead where the system refused. */
  readonly spawn: (cwd: string) => Promise<AcpChild | { readonly spawnError: string }>;
  /** Aborts when nobody wants the run any more. */
  readonly signal: AbortSignal;
  /** On the clock of `performance.now()`: when the session must be ready. */
  readonly deadline: number;
}

/** What can be said without a process. */
export async function checkRequest({ request, provider }: StartParts): Promise<{ readonly ok: true; readonly cwd: string } | StartFailure> {
  if (request.depth > provider.maxDepth) {
    const message = `a subagent of "${provider.name}" would stand ${request.depth} delegations deep, and ${provider.maxDepth} is the limit; do the task without another subagent`;
    return { ok: false, code: 'INVALID_PARAMS', message };
  }
  const place = await resolveWorkingDirectory(provider.cwd, request.cwd);
  return place.ok ? { ok: true, cwd: place.path } : { ok: false, code: 'CWD_INVALID', message: place.message };
}

export async function startChild(parts: StartParts, cwd: string): Promise<ChildStart> {
  try {
    await parts.prepare();
  } catch {
    // A damaged installation: the reason would tell the model nothing.
    return { ok: false, code: 'INTERNAL', message: 'the ACP client of this server cannot be loaded; its installation is incomplete' };
  }
  if (parts.signal.aborted) return aborted;
  const warm = parts.takeWarm(cwd);
  if (warm !== undefined) {
    const start = await openSession({ ...parts, deadline: warmDeadline(parts) }, warm, cwd);
    if (parts.signal.aborted || (start.ok && warm.isSound)) return start;
    // It died, or went wrong, while nobody looked: that is no reason to fail a run that has not begun.
    await warm.end(hurriedGraces);
  }
  const child = await parts.spawn(cwd);
  if ('spawnError' in child) {
    return {
      ok: false,
      code: 'SUBAGENT_FAILED',
      message: `the subagent "${parts.provider.name}" could not be started: ${child.spawnError}`,
    };
  }
  return await openSession(parts, child, cwd);
}

/** A session of a warm child is a matter of milliseconds: most of the time is kept for a fresh one, should it hang. */
const maxWarmMs = 2000;

function warmDeadline({ provider, deadline }: StartParts): number {
  return Math.min(deadline, performance.now() + Math.min(maxWarmMs, provider.startTimeoutMs / 4));
}

const aborted: StartFailure = { ok: false, code: 'REQUEST_CANCELLED', message: abortedText };

async function openSession(parts: StartParts, child: AcpChild, cwd: string): Promise<ChildStart> {
  const opened = await raced(parts, child, handshake(parts, child, cwd));
  if (typeof opened === 'string' && !parts.signal.aborted) return { ok: true, child, sessionId: opened };
  await child.end(hurriedGraces);
  return typeof opened === 'string' || parts.signal.aborted ? aborted : opened;
}

/** The session's id, or why there is none. */
async function handshake(parts: StartParts, child: AcpChild, cwd: string): Promise<string | StartFailure> {
  const { provider, request } = parts;
  let step = 'initialize';
  try {
    if (!child.isInitialized) await child.initialize();
    const session = sessionParams(provider, request, cwd, child.traits);
    if (!session.ok) return refusedOption(provider, session.option);
    step = 'session/new';
    return await newSession(parts, child, cwd, session.params);
  } catch (error) {
    return await explain(provider, child, step, error);
  }
}

const invalidParams = -32602;

/**
 * A child that does not know what its tokens cost refuses a budget in dollars. It is started without: the money is charged
 * to the parent's budget all the same.
 */
async function newSession({ provider, request }: StartParts, child: AcpChild, cwd: string, params: NewSessionRequest): Promise<string> {
  const { maxCostUsd, ...withoutCost } = request;
  try {
    return await child.newSession(params);
  } catch (error) {
    const session = sessionParams(provider, withoutCost, cwd, child.traits);
    if (maxCostUsd === undefined || (error as { code?: unknown }).code !== invalidParams || !session.ok) throw error;
    return await child.newSession(session.params);
  }
}

function refusedOption({ name }: SubagentProvider, option: string): StartFailure {
  const message = `the subagent "${name}" does not take the option ${option}, which is configured for it; remove it from the provider, or choose an agent that announces it`;
  return { ok: false, code: 'INVALID_PARAMS', message };
}

/** JSON-RPC error of an agent that nobody has signed in to. */
export const authRequired = -32000;

async function explain({ name }: SubagentProvider, child: AcpChild, step: string, error: unknown): Promise<StartFailure> {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === authRequired) {
    const said = typeof message === 'string' ? ` It says: ${message}` : '';
    const text = `the subagent "${name}" needs to be signed in first: run its command by hand once, or give it its key in the provider's env.${said}`;
    return { ok: false, code: 'AUTH_REQUIRED', message: diagnosticText(text, child.secrets) };
  }
  // A child that is gone has not refused anything: how it went says more than the broken connection.
  const words = child.isClosed ? await child.lastWords() : [String(message ?? error), child.stderrTail()].join('\n');
  return failed(child, `the subagent "${name}" failed at ${step}: ${words}`);
}

function failed(child: AcpChild, text: string): StartFailure {
  return { ok: false, code: 'SUBAGENT_FAILED', message: diagnosticText(text, child.secrets) };
}

async function raced(
  { provider, signal, deadline }: StartParts,
  child: AcpChild,
  opened: Promise<string | StartFailure>,
): Promise<string | StartFailure> {
  const race = new AbortController();
  const stopped = new Promise<StartFailure>((resolve) => {
    const { name, startTimeoutMs } = provider;
    const expire = (): void =>
      resolve(failed(child, `the subagent "${name}" had no session ready within ${startTimeoutMs} ms\n${child.stderrTail()}`));
    const timer = setTimeout(expire, Math.max(0, deadline - performance.now()));
    const abort = (): void => resolve(aborted);
    signal.addEventListener('abort', abort, { signal: race.signal });
    race.signal.addEventListener('abort', () => clearTimeout(timer));
    if (signal.aborted) abort();
  });
  try {
    return await Promise.race([opened, stopped]);
  } finally {
    race.abort();
  }
}
