/**
 * The permission gate of one session: what the person rejected for good, then the mode and the policy, then the client.
 *
 * Fails closed everywhere: an answer counts for exactly the call it was asked for, and anything but a clear yes is a no.
 * Lasting answers belong to the workspace. Those that could not be kept there live in the log, from which
 * {@link SessionPermissions.observe} learns them.
 */
import { setImmediate } from 'node:timers/promises';
import type { RequestPermissionRequest, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { EventData, EventInput, PermissionMode } from '../../shared/events.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';
import type { Journal } from '../agent/journal.ts';
import { titleLine } from '../display/title-line.ts';
import type { RestoreVerdict } from '../undo/restored-files.ts';
import { type AskOutcome, askOnce } from './ask-once.ts';
import type { PermissionCall, PermissionDecision, PermissionGate } from './permission-gate.ts';
import { askedByPolicy, denied, deniedByPolicy, networkNotCut, type Refusal, reasonOfRule, refusals } from './permission-texts.ts';
import {
  decideAccess,
  type Grant,
  grantFor,
  pathGrant,
  type PolicyContext,
  type ResolvedAccess,
  refusedByMode,
} from '../../shared/permission/mode-policy.ts';
import { type RuledCall, type RuleVerdict, strictest } from '../../shared/permission/compiled-policy.ts';
import { fallbackRuleName } from '../../shared/policy-rules.ts';
import { hiddenPlaces } from './hidden-places.ts';
import { KeptAnswers, type KeptRejection } from './kept-answers.ts';
import { nothingLasts, optionIds, permissionOptions, type PermissionOptions, whatLasts } from './permission-options.ts';
import { resolveAccess } from './resolve-access.ts';
import { undoToolName, undoVerdict } from './undo-verdict.ts';
import type { LastingGrants } from './workspace-grants.ts';

export interface SessionPermissionsOptions {
  readonly sessionId: string;
  /** The session's canonical working directory. */
  readonly cwd: string;
  /** The workspace: canonical, `cwd` among them; `cwd` alone when absent. */
  readonly roots?: readonly string[];
  readonly mode: PermissionMode;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
  readonly journal: Pick<Journal, 'append'>;
  readonly ask: (request: PermissionRequest) => Promise<PermissionAnswer>;
  /** Takes an open question back. What becomes of it is of no interest here. */
  readonly withdraw: (requestKey: string) => Promise<void> | void;
  /** Posts what is gathered; gives the number of the batch that holds the call's `tool_call`. */
  readonly flush: () => number;
  /** The self-contained `toolCall` of a request, as the projection makes it. */
  readonly toolCall: (call: PermissionCall, reason: string | undefined) => ToolCallUpdate;
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories?: readonly string[];
  /** The policies of the server and of the session, as far as there are any. */
  readonly policies?: readonly { decide(call: RuledCall): RuleVerdict | undefined }[];
  /** Whether a command can run without a network; nothing that needs it is allowed when it is not known. */
  readonly canCutNetwork?: () => Promise<boolean>;
  /** What was answered for good in this workspace; absent for work that asks about one call at a time and heeds nothing else. */
  readonly lasting?: LastingGrants;
  /** `false`: only this one call is ever asked about. For clients that are programs. */
  readonly offersGrants?: boolean;
}

export class SessionPermissions implements PermissionGate {
  readonly #options: SessionPermissionsOptions;
  readonly #kept: KeptAnswers;
  #mode: PermissionMode;
  #asked = 0;

  constructor(options: SessionPermissionsOptions) {
    this.#options = options;
    this.#kept = new KeptAnswers(options.lasting);
    this.#mode = options.mode;
  }

  get mode(): PermissionMode {
    return this.#mode;
  }

  /** Holds from the next call on; a question that is open stays open. */
  setMode(mode: PermissionMode): void {
    this.#mode = mode;
  }

  /** Learns mode and grants from an event of the log. Idempotent, so live events may be shown to it as well. */
  observe(event: EventInput): void {
    if (event.type === 'mode/change') this.#mode = event.data.mode;
    else if (event.type === 'permission/decided') this.#kept.learn(event.data);
  }

  async decide(call: PermissionCall, signal: AbortSignal): Promise<PermissionDecision> {
    if (signal.aborted) return refusals.cancelled;
    // Read before anything is awaited: the mode that held when the call was made.
    const mode = this.#mode;
    const hasPolicy = this.#policies.length > 0;
    const { hasRejections } = this.#kept;
    if (!hasPolicy && !hasRejections && (call.access.kind === 'none' || mode === 'full-access')) return { allowed: true };
    try {
      const access = await resolveAccess(call.access, hasPolicy);
      const rejected = hasRejections ? this.#rejectionOf(call, access) : undefined;
      if (rejected !== undefined) return this.#refuse(call, { ...rejected, by: 'grant' }, refusals.keptRejection);
      return hasPolicy ? await this.#decideByPolicy(mode, call, access, signal) : await this.#decideByMode(mode, call, access, signal);
    } catch {
      // Above all a log that refuses the entry. A decision that is not on record is not a yes.
      return refusals.fault;
    }
  }

  /** What an undo needs for writing this path, which nobody is asked about. Never rejects. */
  async verdictOnUndo(path: string): Promise<RestoreVerdict> {
    try {
      const access = await resolveAccess({ kind: 'write', paths: [path] }, this.#policies.length > 0);
      return undoVerdict(access, {
        mode: this.#mode,
        policies: this.#policies,
        context: this.#context,
        isRejected: (what) => this.#kept.hasRejections && this.#rejectionOf({ toolName: undoToolName }, what) !== undefined,
      });
    } catch {
      return { kind: 'deny', why: 'it cannot be known whether it may be changed' };
    }
  }

  /** Holds in every mode and under every policy: between a yes of theirs and a no of the person the stricter word counts. */
  #rejectionOf({ toolName }: Pick<PermissionCall, 'toolName'>, access: ResolvedAccess): KeptRejection | undefined {
    const each = access.kind === 'read' || access.kind === 'write' ? access.paths.map((path) => pathGrant(access.kind, [path])) : [];
    return this.#kept.rejectionOf([grantFor(access, toolName), ...each].map(({ key }) => key));
  }

  get #places(): Pick<PolicyContext, 'cwd' | 'roots' | 'ownDirectories'> {
    const { cwd, roots = [cwd], ownDirectories } = this.#options;
    return { cwd, roots, ...(ownDirectories === undefined ? {} : { ownDirectories }) };
  }

  get #context(): PolicyContext {
    return { ...this.#places, grants: { has: (key) => this.#kept.allowanceOf(key) !== undefined } };
  }

  get #policies(): NonNullable<SessionPermissionsOptions['policies']> {
    return this.#options.policies ?? [];
  }

  /** The policy stands in the place of what the mode would allow or ask; what the mode refuses stays refused. */
  async #decideByPolicy(
    mode: PermissionMode,
    call: PermissionCall,
    access: ResolvedAccess,
    signal: AbortSignal,
  ): Promise<PermissionDecision> {
    const refusal = refusedByMode(mode, access);
    if (refusal !== undefined) return this.#refuse(call, { outcome: 'reject', by: 'mode' }, denied(refusal));
    const verdict = strictest(this.#policies.map((policy) => policy.decide({ toolName: call.toolName, access })));
    // Nothing is touched, and no rule speaks of it; on record all the same.
    if (verdict === undefined) return this.#allowByRule(call, fallbackRuleName);
    const { rule } = verdict;
    if (verdict.action === 'deny') return this.#refuse(call, { outcome: 'reject', by: 'policy', rule }, deniedByPolicy(rule, verdict.why));
    const network = access.kind === 'execute' ? verdict.network : undefined;
    if (network === 'none' && (await this.#options.canCutNetwork?.()) !== true) {
      return this.#refuse(call, { outcome: 'reject', by: 'policy', rule }, networkNotCut(rule));
    }
    if (signal.aborted) return refusals.cancelled;
    const decision = verdict.action === 'allow' ? this.#allowByRule(call, rule) : await this.#askByRule(call, access, verdict, signal);
    return decision.allowed && network === 'none' ? { ...decision, network } : decision;
  }

  #allowByRule(call: PermissionCall, rule: string): PermissionDecision {
    this.#logDecision(call, { outcome: 'allow-once', by: 'policy', rule });
    return { allowed: true };
  }

  async #askByRule(call: PermissionCall, access: ResolvedAccess, verdict: RuleVerdict, signal: AbortSignal): Promise<PermissionDecision> {
    const { rule } = verdict;
    const grant = grantFor(access, call.toolName);
    const outcome = this.#kept.allowanceOf(grant.key);
    if (outcome !== undefined) {
      this.#logDecision(call, { outcome, by: 'grant', rule, grant: grant.key });
      return { allowed: true };
    }
    const timeoutMs = verdict.askTimeoutMs ?? this.#options.timeoutMs;
    const answer = await this.#ask(call, { why: reasonOfRule(rule, verdict.why), access, grant, rule, timeoutMs }, signal);
    return answer.allowed || answer === refusals.cancelled ? answer : askedByPolicy(answer, rule);
  }

  async #decideByMode(
    mode: PermissionMode,
    call: PermissionCall,
    access: ResolvedAccess,
    signal: AbortSignal,
  ): Promise<PermissionDecision> {
    const verdict = decideAccess(mode, access, this.#context);
    switch (verdict.kind) {
      case 'allow':
        return { allowed: true };
      case 'granted':
        this.#logDecision(call, { outcome: this.#kept.allowanceOf(verdict.key) ?? 'allow-always', by: 'grant', grant: verdict.key });
        return { allowed: true };
      case 'deny':
        this.#logDecision(call, { outcome: 'reject', by: 'mode' });
        return denied(verdict.text);
      case 'ask':
        return signal.aborted
          ? refusals.cancelled
          : await this.#ask(call, { ...verdict, access, timeoutMs: this.#options.timeoutMs }, signal);
      default:
        return refusals.fault;
    }
  }

  async #ask(call: PermissionCall, question: Question, signal: AbortSignal): Promise<PermissionDecision> {
    const { journal, flush, sessionId } = this.#options;
    const options = await this.#offered(question);
    if (signal.aborted) return refusals.cancelled;
    const rejected = this.#kept.rejectionOf([question.grant.key]);
    if (rejected !== undefined) return this.#refuse(call, { ...rejected, by: 'grant' }, refusals.keptRejection);
    const why = [question.why, hiddenPlaces(call.view, question.access)].filter((part) => part !== undefined).join(' ');
    const toolCall = this.#options.toolCall(call, why === '' ? undefined : why);
    const title = titleLine(call.view.title, call.toolName);
    journal.append({ type: 'permission/asked', data: { turn: call.turn, callId: call.callId, title } });
    this.#asked += 1;
    const requestKey = `${call.turn}:${this.#asked}:${call.callId}`;
    const params: RequestPermissionRequest = { sessionId, toolCall, options };
    const request: PermissionRequest = { sessionId, requestKey, params, afterBatch: flush() };
    const outcome = await askOnce(() => this.#options.ask(request), { signal, timeoutMs: question.timeoutMs });
    if (outcome.kind !== 'answered') this.#withdraw(requestKey);
    const answer = outcome.kind === 'answered' ? outcome.answer : undefined;
    // With the cancel of the turn clients answer so, too, and that comes over another port.
    if (answer?.outcome === 'cancelled') await setImmediate();
    return await this.#settle(call, question, { options, outcome: signal.aborted ? { kind: 'aborted' } : outcome });
  }

  async #settle(call: PermissionCall, { grant, rule }: Question, { options, outcome }: Settled): Promise<PermissionDecision> {
    const asked = rule === undefined ? {} : { rule };
    if (outcome.kind === 'aborted') return this.#refuse(call, { outcome: 'cancelled', by: 'client', ...asked }, refusals.cancelled);
    if (outcome.kind === 'timeout') return this.#refuse(call, { outcome: 'unavailable', by: 'timeout', ...asked }, refusals.timeout);
    const answer = outcome.kind === 'failed' ? undefined : outcome.answer;
    if (answer?.outcome === 'cancelled') return this.#refuse(call, { outcome: 'cancelled', by: 'client', ...asked }, refusals.unanswered);
    const chosen = answer?.outcome === 'selected' ? options.find((option) => option.optionId === answer.optionId) : undefined;
    switch (chosen?.optionId ?? 'none') {
      case optionIds.allowOnce:
        this.#logDecision(call, { outcome: 'allow-once', by: 'client', ...asked });
        return { allowed: true };
      case optionIds.allowAlways:
        this.#logDecision(call, { outcome: await this.#kept.keep('allow', grant.key), by: 'client', ...asked, grant: grant.key });
        return { allowed: true };
      case optionIds.rejectOnce:
        return this.#refuse(call, { outcome: 'reject', by: 'client', ...asked }, refusals.rejected);
      case optionIds.rejectAlways: {
        const outcome = await this.#kept.keep('reject', grant.key);
        return this.#refuse(call, { outcome, by: 'client', ...asked, grant: grant.key }, refusals.rejectedForGood);
      }
      default:
        return this.#refuse(call, { outcome: 'unavailable', by: 'client', ...asked }, refusals.unavailable);
    }
  }

  async #offered({ access, grant }: Question): Promise<PermissionOptions> {
    const { lasting, offersGrants } = this.#options;
    const canLast = lasting !== undefined && offersGrants !== false;
    return permissionOptions(grant, canLast ? await whatLasts(access, grant, this.#places) : nothingLasts);
  }

  #refuse(call: PermissionCall, decision: Decision, refusal: Refusal): Refusal {
    this.#logDecision(call, decision);
    return refusal;
  }

  #logDecision(call: PermissionCall, decision: Decision): void {
    this.#options.journal.append({ type: 'permission/decided', data: { turn: call.turn, callId: call.callId, ...decision } });
  }

  #withdraw(requestKey: string): void {
    // The question no longer counts, whether or not the client hears of it.
    void Promise.resolve()
      .then(() => this.#options.withdraw(requestKey))
      .catch(() => undefined);
  }
}

interface Question {
  readonly why: string | undefined;
  readonly access: ResolvedAccess;
  readonly grant: Grant;
  /** The rule that demands the question. */
  readonly rule?: string;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
}

type Decision = Pick<EventData['permission/decided'], 'outcome' | 'by' | 'grant' | 'rule'>;

interface Settled {
  /** What was offered. */
  readonly options: PermissionOptions;
  readonly outcome: AskOutcome;
}
