/**
 * The permission requests of one run: answered by the provider's rule, or passed up as questions.
 *
 * Fails closed. An answer names an option that the child itself offered, and one that holds for this call only; where there
 * is none, and whatever goes wrong, the child is told that nobody decided.
 */
import { randomUUID } from 'node:crypto';
import type { PermissionOptionKind, RequestPermissionRequest, RequestPermissionResponse, ToolCallContent } from '@agentclientprotocol/sdk';
import type { SubagentPermission, SubagentQuestion } from '../../../shared/subagent-protocol.ts';
import { boundedJson } from './bounded-json.ts';
import { readToolCard, type ToolCardPart } from './read-update.ts';

/** Questions that wait at once; more are answered as if nobody had decided. */
const maxOpen = 16;
const maxInputChars = 16 * 1024;
const maxTextBlocks = 20;
const maxTextChars = 4096;

const undecided: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } };

export interface QuestionSinks {
  readonly ask: (question: SubagentQuestion) => void;
  readonly withdraw: (questionId: string) => void;
  /** What is known of the call's card already: a request may name the call only. */
  readonly cardOf: (callId: string) => ToolCardPart | undefined;
}

export class OpenQuestions {
  readonly #permission: SubagentPermission;
  readonly #sinks: QuestionSinks;
  readonly #open = new Map<string, (allow: boolean | undefined) => void>();
  #closed = false;

  constructor(permission: SubagentPermission, sinks: QuestionSinks) {
    this.#permission = permission;
    this.#sinks = sinks;
  }

  /** True while the child waits for somebody's answer. */
  get isWaiting(): boolean {
    return this.#open.size > 0;
  }

  /** Fulfils with the answer for the child. `withdrawn` aborts when the child does not wait any more. */
  async decide(request: RequestPermissionRequest, withdrawn: AbortSignal): Promise<RequestPermissionResponse> {
    if (this.#closed) return undecided;
    switch (this.#permission) {
      case 'allow':
        return pick(request, 'allow_once');
      case 'reject':
        return pick(request, 'reject_once');
      case 'ask': {
        const allow = await this.#ask(request, withdrawn);
        return allow === undefined ? undecided : pick(request, allow ? 'allow_once' : 'reject_once');
      }
      default:
        return this.#permission satisfies never;
    }
  }

  /** Answers one question. False when there is none with this id, or it has its answer already. */
  answer(questionId: string, allow: boolean): boolean {
    const settle = this.#open.get(questionId);
    settle?.(allow);
    return settle !== undefined;
  }

  /** Answers all that wait, and all that come later, as undecided. */
  close(): void {
    this.#closed = true;
    for (const settle of this.#open.values()) settle(undefined);
  }

  async #ask(request: RequestPermissionRequest, withdrawn: AbortSignal): Promise<boolean | undefined> {
    if (withdrawn.aborted || this.#open.size >= maxOpen) return undefined;
    const question = this.#question(request);
    const { questionId } = question;
    return await new Promise((resolve) => {
      const drop = (): void => settle(undefined);
      const settle = (allow: boolean | undefined): void => {
        withdrawn.removeEventListener('abort', drop);
        this.#open.delete(questionId);
        this.#sinks.withdraw(questionId);
        resolve(allow);
      };
      withdrawn.addEventListener('abort', drop);
      this.#open.set(questionId, settle);
      this.#sinks.ask(question);
    });
  }

  #question({ toolCall }: RequestPermissionRequest): SubagentQuestion {
    const card = { ...this.#sinks.cardOf(toolCall.toolCallId), ...readToolCard(toolCall) };
    const rawInput = boundedJson(toolCall.rawInput, maxInputChars);
    return {
      questionId: randomUUID(),
      title: card.title ?? 'a call that the subagent did not describe',
      toolKind: card.toolKind ?? 'other',
      ...(rawInput === undefined ? {} : { rawInput }),
      content: (toolCall.content ?? []).slice(0, maxTextBlocks).flatMap(textOf),
    };
  }
}

function pick({ options }: RequestPermissionRequest, kind: PermissionOptionKind): RequestPermissionResponse {
  const option = options.find((one) => one.kind === kind);
  return option === undefined ? undecided : { outcome: { outcome: 'selected', optionId: option.optionId } };
}

/** What of a card's content can be shown as text. */
function textOf(content: ToolCallContent): string[] {
  if (content.type === 'content' && content.content.type === 'text') return [cut(content.content.text)];
  if (content.type === 'diff') return [cut(`${content.path}\n${content.newText}`)];
  return [];
}

function cut(text: string): string {
  return text.length > maxTextChars ? `${text.slice(0, maxTextChars)}…` : text;
}
