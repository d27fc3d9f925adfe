/**
 * Questions of subagents, asked of the client in the name of the tool call that delegates.
 *
 * Each is one decision about exactly what the child showed, never a grant. The session's mode speaks first; after that,
 * anything but a clear yes is a no.
 */
import type { RequestPermissionRequest, ToolCallContent } from '@agentclientprotocol/sdk';
import type { EventData, PermissionMode } from '../../shared/events.ts';
import type { RenderKind } from '../../shared/render-intents.ts';
import { selfProvider, type SubagentQuestion } from '../../shared/subagent-protocol.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';
import type { Journal } from '../agent/journal.ts';
import { titleLine } from '../display/title-line.ts';
import { capJson, ContentBudget } from '../projection/size-caps.ts';
import { type AskOutcome, askOnce } from './ask-once.ts';

export interface SubagentQuestionsParts {
  readonly sessionId: string;
  /** `0` waits for as long as the client takes. */
  readonly timeoutMs: number;
  readonly mode: () => PermissionMode;
  /** With a policy no mode answers with yes: what a rule has asked, or what a program shows here, is for the client. */
  readonly hasPolicy?: boolean;
  readonly journal: Pick<Journal, 'append'>;
  readonly ask: (request: PermissionRequest) => Promise<PermissionAnswer>;
  readonly withdraw: (requestKey: string) => Promise<void>;
  /** Posts what is gathered; gives the number of the batch that holds the call's updates. */
  readonly flush: () => number;
}

/** On whose behalf a child's question is asked. */
export interface QuestionAsker {
  /** The tool call that delegates. */
  readonly callId: string;
  readonly turn: number;
  readonly provider: string;
  readonly description: string;
}

const optionIds = { once: 'allow_once', reject: 'reject_once' } as const;
const contentBytes = 32 * 1024;

type Decision = Pick<EventData['permission/decided'], 'outcome' | 'by'>;

export class SubagentQuestions {
  readonly #parts: SubagentQuestionsParts;
  /** Of the questions that are open. */
  readonly #forbidden = new Set<AbortController>();
  #asked = 0;

  constructor(parts: SubagentQuestionsParts) {
    this.#parts = parts;
  }

  /** Whether the child may do it, this once. Never rejects; a question whose `signal` aborts is taken back. */
  async ask(asker: QuestionAsker, question: SubagentQuestion, signal: AbortSignal): Promise<boolean> {
    try {
      const decision = this.#byMode() ?? (await this.#askClient(asker, question, signal));
      this.#log(asker, decision);
      return decision.outcome === 'allow-once';
    } catch {
      // Above all a log that refuses the entry. A decision that is not on record is not a yes.
      return false;
    }
  }

  /** Who may do everything need not be asked; where nothing may be changed, nobody can be talked into it. */
  #byMode(): Decision | undefined {
    const mode = this.#parts.mode();
    if (mode === 'full-access' && this.#parts.hasPolicy !== true) return { outcome: 'allow-once', by: 'mode' };
    return mode === 'read-only' || mode === 'plan' ? { outcome: 'reject', by: 'mode' } : undefined;
  }

  async #askClient(asker: QuestionAsker, question: SubagentQuestion, signal: AbortSignal): Promise<Decision> {
    const { sessionId, journal, flush, timeoutMs } = this.#parts;
    const { turn, callId } = asker;
    const title = titleLine(question.title, 'a call of a subagent');
    journal.append({ type: 'permission/asked', data: { turn, callId, title } });
    this.#asked += 1;
    const requestKey = `subagent:${this.#asked}:${callId}`;
    const params = requestParams(sessionId, asker, { ...question, title });
    const request = { sessionId, requestKey, params, afterBatch: flush(), outlivesCall: true } as const;
    const forbidden = new AbortController();
    this.#forbidden.add(forbidden);
    const outcome = await askOnce(() => this.#parts.ask(request), { signal: AbortSignal.any([signal, forbidden.signal]), timeoutMs });
    this.#forbidden.delete(forbidden);
    if (outcome.kind !== 'answered') void this.#withdraw(requestKey);
    const byMode = { outcome: 'reject', by: 'mode' } as const;
    if (outcome.kind === 'aborted' && !signal.aborted) return byMode;
    const decision = decisionOf(outcome);
    // A yes of an earlier mode: the mode that holds now was chosen later, and is the stricter word.
    return decision.outcome === 'allow-once' && this.#byMode()?.outcome === 'reject' ? byMode : decision;
  }

  /** Takes the open questions back where the mode refuses now whatever a child may ask: their answer is no. */
  modeChanged(): void {
    if (this.#byMode()?.outcome !== 'reject') return;
    for (const forbidden of this.#forbidden) forbidden.abort();
  }

  /** The question no longer counts, whether or not the client hears of it. */
  async #withdraw(requestKey: string): Promise<void> {
    await this.#parts.withdraw(requestKey).catch(() => undefined);
  }

  #log({ turn, callId }: QuestionAsker, decision: Decision): void {
    this.#parts.journal.append({ type: 'permission/decided', data: { turn, callId, ...decision } });
  }
}

function decisionOf(outcome: AskOutcome): Decision {
  if (outcome.kind === 'timeout') return { outcome: 'unavailable', by: 'timeout' };
  if (outcome.kind === 'aborted') return { outcome: 'cancelled', by: 'client' };
  const answer = outcome.kind === 'answered' ? outcome.answer : undefined;
  if (answer?.outcome === 'cancelled') return { outcome: 'cancelled', by: 'client' };
  switch (answer?.outcome === 'selected' ? answer.optionId : 'none') {
    case optionIds.once:
      return { outcome: 'allow-once', by: 'client' };
    case optionIds.reject:
      return { outcome: 'reject', by: 'client' };
    default:
      return { outcome: 'unavailable', by: 'client' };
  }
}

function requestParams(sessionId: string, asker: QuestionAsker, question: SubagentQuestion): RequestPermissionRequest {
  const budget = new ContentBudget(contentBytes);
  const who = `The subagent ${asker.provider} (${asker.description}) asks to do this.`;
  const content = [who, ...question.content].map((text): ToolCallContent => {
    return { type: 'content', content: { type: 'text', text: budget.take(text) } };
  });
  return {
    sessionId,
    toolCall: {
      toolCallId: asker.callId,
      title: question.title,
      kind: kindFor(asker, question),
      ...(question.rawInput === undefined ? {} : { rawInput: capJson(question.rawInput) }),
      content,
    },
    options: [
      { optionId: optionIds.once, name: 'Allow once', kind: 'allow_once' },
      { optionId: optionIds.reject, name: 'Reject', kind: 'reject_once' },
    ],
  };
}

/**
 * Never left out: a client that allows by kind would guess one from the title. That it only reads is not taken from another program,
 * as some clients allow reads unseen.
 */
function kindFor({ provider }: QuestionAsker, { toolKind }: SubagentQuestion): RenderKind {
  return provider === selfProvider || ['execute', 'edit', 'delete', 'move'].includes(toolKind) ? toolKind : 'other';
}
