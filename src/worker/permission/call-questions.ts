/**
 * Questions to the client about calls: what each offers, and what its answer means. An answer counts for exactly the call it was
 * asked for, and anything but a clear yes is a no; each decision is on record before it is acted on.
 */
import { setImmediate } from 'node:timers/promises';
import type { RequestPermissionRequest, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { EventData, PermissionMode } from '../../shared/events.ts';
import { type Grant, type PolicyContext, refusedByMode, type ResolvedAccess } from '../../shared/permission/mode-policy.ts';
import { commandNetwork, type SandboxState, sandboxWords } from '../../shared/sandbox.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';
import type { Journal } from '../agent/journal.ts';
import { titleLine } from '../display/title-line.ts';
import { type AskOutcome, askOnce } from './ask-once.ts';
import { hiddenPlaces } from './hidden-places.ts';
import type { KeptAnswers } from './kept-answers.ts';
import type { PermissionCall, PermissionDecision } from './permission-gate.ts';
import { nothingLasts, optionIds, permissionOptions, type PermissionOptions, whatLasts } from './permission-options.ts';
import { denied, type Refusal, refusals } from './permission-texts.ts';

export interface CallQuestionsOptions {
  readonly sessionId: string;
  readonly journal: Pick<Journal, 'append'>;
  readonly ask: (request: PermissionRequest) => Promise<PermissionAnswer>;
  /** Takes an open question back. What becomes of it is of no interest here. */
  readonly withdraw: (requestKey: string) => Promise<void> | void;
  /** What commands are kept in; absent where that is nothing by choice. */
  readonly sandboxState?: () => Promise<SandboxState>;
  /** Posts what is gathered; gives the number of the batch that holds the call's `tool_call`. */
  readonly flush: () => number;
  /** The self-contained `toolCall` of a request, as the projection makes it. */
  readonly toolCall: (call: PermissionCall, reason: string | undefined) => ToolCallUpdate;
}

export interface CallQuestionsParts {
  readonly kept: KeptAnswers;
  readonly places: Pick<PolicyContext, 'cwd' | 'roots' | 'ownDirectories'>;
  /** `false`: only this one call is ever asked about. */
  readonly offersLasting: boolean;
  /** The mode that holds now. */
  readonly mode: () => PermissionMode;
}

export interface Question {
  readonly why: string | undefined;
  readonly access: ResolvedAccess;
  readonly grant: Grant;
  /** The rule that demands the question. */
  readonly rule?: string;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
  /** What the command may reach. */
  readonly network?: 'none' | 'any' | undefined;
}

export type Decision = Pick<EventData['permission/decided'], 'outcome' | 'by' | 'grant' | 'rule'>;

interface Settled {
  /** What was offered. */
  readonly options: PermissionOptions;
  readonly signal: AbortSignal;
  readonly outcome: AskOutcome;
  /** In what words the mode refused the call while the question was open. */
  readonly forbidden: string | undefined;
}

interface OpenQuestion {
  readonly access: ResolvedAccess;
  /** Aborted with the words of the mode that refuses the call. */
  readonly forbidden: AbortController;
}

export class CallQuestions {
  readonly #options: CallQuestionsOptions;
  readonly #parts: CallQuestionsParts;
  readonly #open = new Set<OpenQuestion>();
  #asked = 0;

  constructor(options: CallQuestionsOptions, parts: CallQuestionsParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Rejects only where the log refuses an entry. */
  async ask(call: PermissionCall, question: Question, signal: AbortSignal): Promise<PermissionDecision> {
    const { journal, flush, sessionId } = this.#options;
    const options = await this.#offered(question);
    if (signal.aborted) return refusals.cancelled;
    const rejected = this.#parts.kept.rejectionOf([rejectKeyOf(question.grant)]);
    if (rejected !== undefined) return this.refuse(call, { ...rejected, by: 'grant' }, refusals.keptRejection);
    const why = [question.why, hiddenPlaces(call.view, question.access), await this.#sandboxOf(question)]
      .filter((part) => part !== undefined)
      .join(' ');
    // The mode may have changed while all this was found out.
    const refusal = this.#refusedNow(question.access);
    if (refusal !== undefined) return this.#refuseByMode(call, question, refusal);
    const toolCall = this.#options.toolCall(call, why === '' ? undefined : why);
    const title = titleLine(call.view.title, call.toolName);
    journal.append({ type: 'permission/asked', data: { turn: call.turn, callId: call.callId, title } });
    this.#asked += 1;
    const requestKey = `${call.turn}:${this.#asked}:${call.callId}`;
    const params: RequestPermissionRequest = { sessionId, toolCall, options };
    const request: PermissionRequest = { sessionId, requestKey, params, afterBatch: flush() };
    const open = { access: question.access, forbidden: new AbortController() };
    this.#open.add(open);
    const ends = AbortSignal.any([signal, open.forbidden.signal]);
    const outcome = await askOnce(() => this.#options.ask(request), { signal: ends, timeoutMs: question.timeoutMs });
    this.#open.delete(open);
    if (outcome.kind !== 'answered') this.#withdraw(requestKey);
    const answer = outcome.kind === 'answered' ? outcome.answer : undefined;
    // With the cancel of the turn clients answer so, too, and that comes over another port.
    if (answer?.outcome === 'cancelled') await setImmediate();
    const forbidden = open.forbidden.signal.aborted ? String(open.forbidden.signal.reason) : undefined;
    return await this.#settle(call, question, { options, signal, forbidden, outcome: signal.aborted ? { kind: 'aborted' } : outcome });
  }

  /** Takes back the open questions about what the mode refuses now: their calls are refused in the mode's words. */
  modeChanged(): void {
    for (const { access, forbidden } of this.#open) {
      const refusal = this.#refusedNow(access);
      if (refusal !== undefined) forbidden.abort(refusal);
    }
  }

  /** Puts a no on record. */
  refuse(call: PermissionCall, decision: Decision, refusal: Refusal): Refusal {
    this.record(call, decision);
    return refusal;
  }

  record(call: PermissionCall, decision: Decision): void {
    this.#options.journal.append({ type: 'permission/decided', data: { turn: call.turn, callId: call.callId, ...decision } });
  }

  async #settle(call: PermissionCall, question: Question, settled: Settled): Promise<PermissionDecision> {
    const { grant, rule, access } = question;
    const { options, signal, outcome, forbidden } = settled;
    const { kept } = this.#parts;
    const asked = rule === undefined ? {} : { rule };
    if (outcome.kind === 'aborted' && !signal.aborted && forbidden !== undefined) return this.#refuseByMode(call, question, forbidden);
    if (outcome.kind === 'aborted') return this.refuse(call, { outcome: 'cancelled', by: 'client', ...asked }, refusals.cancelled);
    if (outcome.kind === 'timeout') return this.refuse(call, { outcome: 'unavailable', by: 'timeout', ...asked }, refusals.timeout);
    const answer = outcome.kind === 'failed' ? undefined : outcome.answer;
    if (answer?.outcome === 'cancelled') return this.refuse(call, { outcome: 'cancelled', by: 'client', ...asked }, refusals.unanswered);
    const chosen = answer?.outcome === 'selected' ? options.find((option) => option.optionId === answer.optionId) : undefined;
    // A yes of an earlier mode: the mode that holds now was chosen later, and is the stricter word.
    const refusal = chosen?.kind.startsWith('allow_') === true ? (forbidden ?? this.#refusedNow(access)) : undefined;
    if (refusal !== undefined) return this.#refuseByMode(call, question, refusal);
    switch (chosen?.optionId ?? 'none') {
      case optionIds.allowOnce:
        this.record(call, { outcome: 'allow-once', by: 'client', ...asked });
        return { allowed: true };
      case optionIds.allowAlways: {
        const lasting = await kept.keep('allow', grant.key, signal);
        // Keeping takes a moment, too. That the answer was kept is on record all the same.
        const late = this.#refusedNow(access);
        this.record(call, { outcome: lasting, by: 'client', ...asked, grant: grant.key });
        return late === undefined ? { allowed: true } : this.#refuseByMode(call, question, late);
      }
      case optionIds.rejectOnce:
        return this.refuse(call, { outcome: 'reject', by: 'client', ...asked }, refusals.rejected);
      case optionIds.rejectAlways: {
        const key = rejectKeyOf(grant);
        const lasting = await kept.keep('reject', key, signal);
        return this.refuse(call, { outcome: lasting, by: 'client', ...asked, grant: key }, refusals.rejectedForGood);
      }
      default:
        return this.refuse(call, { outcome: 'unavailable', by: 'client', ...asked }, refusals.unavailable);
    }
  }

  #refusedNow(access: ResolvedAccess): string | undefined {
    return refusedByMode(this.#parts.mode(), access);
  }

  #refuseByMode(call: PermissionCall, { rule }: Question, text: string): Refusal {
    return this.refuse(call, { outcome: 'reject', by: 'mode', ...(rule === undefined ? {} : { rule }) }, denied(text));
  }

  async #offered({ access, grant }: Question): Promise<PermissionOptions> {
    const { offersLasting, places } = this.#parts;
    return permissionOptions(grant, offersLasting ? await whatLasts(access, grant, places) : nothingLasts);
  }

  /** What the command would be kept in. Not known is not said: a broker that is lost runs no command either. */
  async #sandboxOf({ access, network }: Question): Promise<string | undefined> {
    if (access.kind !== 'execute') return undefined;
    const state = await this.#options.sandboxState?.().catch(() => undefined);
    if (state === undefined) return undefined;
    const known = typeof access.conditions === 'object' ? access.conditions.network : undefined;
    return sandboxWords(state, known ?? commandNetwork(state, { bound: network, asks: access.network }));
  }

  #withdraw(requestKey: string): void {
    // The question no longer counts, whether or not the client hears of it.
    void Promise.resolve()
      .then(() => this.#options.withdraw(requestKey))
      .catch(() => undefined);
  }
}

function rejectKeyOf({ key, rejectKey = key }: Grant): string {
  return rejectKey;
}
