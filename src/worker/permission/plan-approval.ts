/**
 * Puts a plan to the person: the one question whose answer changes the session's mode.
 *
 * Fails closed: anything but a clear approval leaves the session in plan mode.
 */
import { setImmediate } from 'node:timers/promises';
import type { RequestPermissionRequest, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { EventData, PermissionMode } from '../../shared/events.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';
import type { Journal } from '../agent/journal.ts';
import { titleLine } from '../display/title-line.ts';
import { type AskOutcome, askOnce } from './ask-once.ts';
import type { PermissionCall } from './permission-gate.ts';

export interface PlanApprovalParts {
  readonly sessionId: string;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
  readonly mode: () => PermissionMode;
  readonly setMode: (mode: PermissionMode) => void;
  /** The number of the running turn. */
  readonly turn: () => number;
  readonly journal: Pick<Journal, 'append'>;
  readonly ask: (request: PermissionRequest) => Promise<PermissionAnswer>;
  readonly withdraw: (requestKey: string) => Promise<void>;
  /** Posts what is gathered; gives the number of the batch that holds the call's `tool_call`. */
  readonly flush: () => number;
  /** The self-contained `toolCall` of a request, as the projection makes it. */
  readonly toolCall: (call: PermissionCall) => ToolCallUpdate;
}

/** What became of a plan. */
export type PlanVerdict =
  | { readonly kind: 'approved'; readonly mode: PermissionMode }
  /** There was nothing to approve: the session is in this mode. */
  | { readonly kind: 'not-planning'; readonly mode: PermissionMode }
  | { readonly kind: 'rejected' | 'cancelled' | 'unanswered' };

/** One kind each: some clients keep one option of a kind. What a mode means stands in `mode-policy.ts`. */
const options = [
  { optionId: 'approve_ask', name: 'Approve, ask before commands', kind: 'allow_once', mode: 'ask' },
  { optionId: 'approve_accept_edits', name: 'Approve, accept all edits', kind: 'allow_always', mode: 'accept-edits' },
  { optionId: 'keep_planning', name: 'Keep planning', kind: 'reject_once', mode: undefined },
] as const satisfies readonly (RequestPermissionRequest['options'][number] & { readonly mode: PermissionMode | undefined })[];

export class PlanApproval {
  readonly #parts: PlanApprovalParts;
  #asked = 0;

  constructor(parts: PlanApprovalParts) {
    this.#parts = parts;
  }

  /**
   * Asks, and switches the mode where the plan was approved. Ends as cancelled soon after `signal` aborts.
   *
   * @throws ServerError LOG_WRITE_FAILED: a decision that is not on record is not a yes
   */
  async present(call: Omit<PermissionCall, 'turn' | 'access'>, signal: AbortSignal): Promise<PlanVerdict> {
    const { mode, setMode, turn } = this.#parts;
    if (mode() !== 'plan') return { kind: 'not-planning', mode: mode() };
    const verdict = verdictOf(await this.#ask({ ...call, turn: turn(), access: { kind: 'none' } }, signal));
    this.#log(call.callId, decisionOf(verdict));
    // The person may have taken another way out of plan mode while the question was open.
    if (mode() !== 'plan') return { kind: 'not-planning', mode: mode() };
    if (verdict.kind === 'approved') setMode(verdict.mode);
    return verdict;
  }

  async #ask(call: PermissionCall, signal: AbortSignal): Promise<AskOutcome> {
    const { sessionId, timeoutMs, journal, flush, toolCall } = this.#parts;
    const { turn, callId } = call;
    const title = titleLine(call.view.title, call.toolName);
    journal.append({ type: 'permission/asked', data: { turn, callId, title } });
    this.#asked += 1;
    const requestKey = `plan:${this.#asked}:${callId}`;
    const offered = options.map(({ optionId, name, kind }) => ({ optionId, name, kind }));
    const params: RequestPermissionRequest = { sessionId, toolCall: toolCall(call), options: offered };
    const request: PermissionRequest = { sessionId, requestKey, params, afterBatch: flush() };
    const outcome = await askOnce(() => this.#parts.ask(request), { signal, timeoutMs });
    if (outcome.kind !== 'answered') void this.#withdraw(requestKey);
    // With the cancel of the turn clients answer so, too, and that comes over another port.
    else if (outcome.answer.outcome === 'cancelled') await setImmediate();
    return signal.aborted ? { kind: 'aborted' } : outcome;
  }

  /** The question no longer counts, whether or not the client hears of it. */
  async #withdraw(requestKey: string): Promise<void> {
    await this.#parts.withdraw(requestKey).catch(() => undefined);
  }

  #log(callId: string, decision: Decision): void {
    this.#parts.journal.append({ type: 'permission/decided', data: { turn: this.#parts.turn(), callId, ...decision } });
  }
}

type Decision = Pick<EventData['permission/decided'], 'outcome' | 'by'>;
type Answered = Exclude<PlanVerdict, { kind: 'not-planning' }> & { readonly late?: true };

function verdictOf(outcome: AskOutcome): Answered {
  if (outcome.kind === 'aborted') return { kind: 'cancelled' };
  if (outcome.kind === 'timeout') return { kind: 'unanswered', late: true };
  const answer = outcome.kind === 'answered' ? outcome.answer : undefined;
  const chosen = answer?.outcome === 'selected' ? options.find(({ optionId }) => optionId === answer.optionId) : undefined;
  if (chosen === undefined) return { kind: 'unanswered' };
  return chosen.mode === undefined ? { kind: 'rejected' } : { kind: 'approved', mode: chosen.mode };
}

function decisionOf(verdict: Answered): Decision {
  switch (verdict.kind) {
    case 'approved':
      return { outcome: 'allow-once', by: 'client' };
    case 'rejected':
      return { outcome: 'reject', by: 'client' };
    case 'cancelled':
      return { outcome: 'cancelled', by: 'client' };
    case 'unanswered':
      return { outcome: 'unavailable', by: verdict.late === true ? 'timeout' : 'client' };
    default:
      return verdict satisfies never;
  }
}
