/**
 * The permission gate of one session: what the person rejected for good, then the mode and the policy, then the client.
 *
 * Fails closed everywhere: an answer counts for exactly the call it was asked for, and anything but a clear yes is a no.
 * Lasting answers belong to the workspace. Those that could not be kept there live in the log, from which
 * {@link SessionPermissions.observe} learns them.
 */
import type { EventInput, PermissionMode } from '../../shared/events.ts';
import type { RestoreVerdict } from '../undo/restored-files.ts';
import type { PermissionCall, PermissionDecision, PermissionGate } from './permission-gate.ts';
import { askedByPolicy, denied, deniedByPolicy, networkNotCut, noSandboxFor, reasonOfRule, refusals } from './permission-texts.ts';
import {
  coveringKeys,
  decideAccess,
  grantFor,
  pathGrant,
  type PolicyContext,
  type ResolvedAccess,
  refusedByMode,
} from '../../shared/permission/mode-policy.ts';
import { type RuledCall, type RuleVerdict, strictest } from '../../shared/permission/compiled-policy.ts';
import { fallbackRuleName } from '../../shared/policy-rules.ts';
import { CallQuestions, type CallQuestionsOptions, type Question } from './call-questions.ts';
import { boundsOfConditions, fullAccessBounds, unaskedBounds, withConditions } from './command-conditions.ts';
import type { SandboxState } from '../../shared/sandbox.ts';
import { KeptAnswers, type KeptRejection } from './kept-answers.ts';
import { resolveAccess } from './resolve-access.ts';
import { undoToolName, undoVerdict } from './undo-verdict.ts';
import type { LastingGrants } from './workspace-grants.ts';

export interface SessionPermissionsOptions extends CallQuestionsOptions {
  /** The session's canonical working directory. */
  readonly cwd: string;
  /** The workspace: canonical, `cwd` among them; `cwd` alone when absent. */
  readonly roots?: readonly string[];
  readonly mode: PermissionMode;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
  /** Absolute directories of this program's own state and settings. */
  readonly ownDirectories?: readonly string[];
  /** The policies of the server and of the session, as far as there are any. */
  readonly policies?: readonly { decide(call: RuledCall): RuleVerdict | undefined }[];
  /** Whether a command can run without a network; nothing that needs it is allowed when it is not known. */
  readonly canCutNetwork?: () => Promise<boolean>;
  /** What commands run in, also where they are kept in nothing by choice; `sandboxState` when absent. */
  readonly commandState?: () => Promise<SandboxState>;
  /** What was answered for good in this workspace; absent for work that asks about one call at a time and heeds nothing else. */
  readonly lasting?: LastingGrants;
  /** Nobody works in the workspace but programs. */
  readonly unattended?: boolean;
  /** `false`: only this one call is ever asked about. For clients that are programs. */
  readonly offersGrants?: boolean;
}

export class SessionPermissions implements PermissionGate {
  readonly #options: SessionPermissionsOptions;
  readonly #kept: KeptAnswers;
  readonly #questions: CallQuestions;
  readonly #modeListeners: (() => void)[] = [];
  #mode: PermissionMode;

  constructor(options: SessionPermissionsOptions) {
    this.#options = options;
    this.#kept = new KeptAnswers(options.lasting);
    const offersLasting = options.lasting !== undefined && options.offersGrants !== false;
    this.#questions = new CallQuestions(options, {
      kept: this.#kept,
      places: this.#places,
      offersLasting,
      mode: () => this.#mode,
    });
    this.#mode = options.mode;
  }

  get mode(): PermissionMode {
    return this.#mode;
  }

  /** Holds from now on: open questions about what the mode refuses are taken back, and their calls refused. Others stay open. */
  setMode(mode: PermissionMode): void {
    this.#mode = mode;
    this.#questions.modeChanged();
    for (const listener of this.#modeListeners) listener();
  }

  /** Hears of each {@link setMode}, once the mode holds. Must not throw. */
  onModeSet(listener: () => void): void {
    this.#modeListeners.push(listener);
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
    if (!hasPolicy && !hasRejections && (call.access.kind === 'none' || mode === 'full-access')) return this.#allowAll(call.access);
    try {
      const access = await resolveAccess(call.access, hasPolicy);
      const rejected = hasRejections ? this.#rejectionOf(call, access) : undefined;
      if (rejected !== undefined) return this.#questions.refuse(call, { ...rejected, by: 'grant' }, refusals.keptRejection);
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
    return this.#kept.rejectionOf([grantFor(access, toolName), ...each].map(({ key, rejectKey }) => rejectKey ?? key));
  }

  get #places(): Pick<PolicyContext, 'cwd' | 'roots' | 'ownDirectories'> {
    const { cwd, roots = [cwd], ownDirectories } = this.#options;
    return { cwd, roots, ...(ownDirectories === undefined ? {} : { ownDirectories }) };
  }

  get #context(): PolicyContext {
    return { ...this.#places, grants: { has: (key) => this.#kept.allowanceOf(key) !== undefined } };
  }

  get #commandState(): SessionPermissionsOptions['commandState'] {
    return this.#options.commandState ?? this.#options.sandboxState;
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
    if (refusal !== undefined) return this.#questions.refuse(call, { outcome: 'reject', by: 'mode' }, denied(refusal));
    const verdict = strictest(this.#policies.map((policy) => policy.decide({ toolName: call.toolName, access })));
    // Nothing is touched, and no rule speaks of it; on record all the same.
    if (verdict === undefined) return this.#allowByRule(call, fallbackRuleName, access);
    const { rule } = verdict;
    if (verdict.action === 'deny')
      return this.#questions.refuse(call, { outcome: 'reject', by: 'policy', rule }, deniedByPolicy(rule, verdict.why));
    const { network, sandbox } = access.kind === 'execute' ? verdict : { network: undefined, sandbox: undefined };
    if (network === 'none' && (await this.#options.canCutNetwork?.()) !== true) {
      return this.#questions.refuse(call, { outcome: 'reject', by: 'policy', rule }, networkNotCut(rule));
    }
    if (sandbox === 'required' && (await this.#options.sandboxState?.())?.kind !== 'bubblewrap') {
      return this.#questions.refuse(call, { outcome: 'reject', by: 'policy', rule }, noSandboxFor(rule));
    }
    if (signal.aborted) return refusals.cancelled;
    const late = refusedByMode(this.#mode, access);
    if (late !== undefined) return this.#questions.refuse(call, { outcome: 'reject', by: 'mode' }, denied(late));
    const decision =
      verdict.action === 'allow' ? this.#allowByRule(call, rule, access) : await this.#askByRule(call, access, verdict, signal);
    const bounds = { ...(network === undefined ? {} : { network }), ...(sandbox === undefined ? {} : { sandbox }) };
    return decision.allowed ? { ...decision, ...bounds } : decision;
  }

  #allowByGrant(access: ResolvedAccess): PermissionDecision {
    return { allowed: true, ...boundsOfConditions(access), ...unaskedBounds(access, this.#isUnattended) };
  }

  async #askByMode(call: PermissionCall, question: Omit<Question, 'timeoutMs'>, signal: AbortSignal): Promise<PermissionDecision> {
    const answer = await this.#questions.ask(call, { ...question, timeoutMs: this.#options.timeoutMs }, signal);
    return answer.allowed ? { ...answer, ...boundsOfConditions(question.access) } : answer;
  }

  #allowByRule(call: PermissionCall, rule: string, access: ResolvedAccess): PermissionDecision {
    this.#questions.record(call, { outcome: 'allow-once', by: 'policy', rule });
    return { allowed: true, ...unaskedBounds(access, this.#isUnattended) };
  }

  #allowAll(access: ResolvedAccess | PermissionCall['access']): PermissionDecision {
    return { allowed: true, ...fullAccessBounds(access, this.#isUnattended) };
  }

  get #isUnattended(): boolean {
    return this.#options.unattended === true;
  }

  async #askByRule(call: PermissionCall, given: ResolvedAccess, verdict: RuleVerdict, signal: AbortSignal): Promise<PermissionDecision> {
    const { rule } = verdict;
    const { network } = verdict;
    const access = await withConditions(given, { state: this.#commandState, network, signal });
    if (signal.aborted) return refusals.cancelled;
    const refusal = refusedByMode(this.#mode, access);
    if (refusal !== undefined) return this.#questions.refuse(call, { outcome: 'reject', by: 'mode', rule }, denied(refusal));
    const grant = grantFor(access, call.toolName);
    const kept = this.#kept.allowanceOfAny(coveringKeys(grant));
    if (kept !== undefined) {
      this.#questions.record(call, { ...kept, by: 'grant', rule });
      return this.#allowByGrant(access);
    }
    const timeoutMs = verdict.askTimeoutMs ?? this.#options.timeoutMs;
    const answer = await this.#questions.ask(
      call,
      { why: reasonOfRule(rule, verdict.why), access, grant, rule, timeoutMs, network },
      signal,
    );
    if (answer.allowed) return { ...answer, ...boundsOfConditions(access) };
    // What the mode refuses was no question of the rule's.
    return answer === refusals.cancelled || answer.text === refusedByMode(this.#mode, access) ? answer : askedByPolicy(answer, rule);
  }

  async #decideByMode(mode: PermissionMode, call: PermissionCall, given: ResolvedAccess, signal: AbortSignal): Promise<PermissionDecision> {
    const asks = mode !== 'full-access' && refusedByMode(mode, given) === undefined;
    const access = asks ? await withConditions(given, { state: this.#commandState, signal }) : given;
    // The mode that held when the call was made, unless a stricter one has come since.
    const now = refusedByMode(this.#mode, access) === undefined ? mode : this.#mode;
    const verdict = decideAccess(now, access, this.#context);
    switch (verdict.kind) {
      case 'allow':
        return now === 'full-access' ? this.#allowAll(access) : { allowed: true };
      case 'granted':
        this.#questions.record(call, { outcome: this.#kept.allowanceOf(verdict.key) ?? 'allow-always', by: 'grant', grant: verdict.key });
        return this.#allowByGrant(access);
      case 'deny':
        this.#questions.record(call, { outcome: 'reject', by: 'mode' });
        return denied(verdict.text);
      case 'ask':
        return signal.aborted ? refusals.cancelled : await this.#askByMode(call, { ...verdict, access }, signal);
      default:
        return refusals.fault;
    }
  }
}
