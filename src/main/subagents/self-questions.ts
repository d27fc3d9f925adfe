/**
 * The permission requests of a session that works for another one: answered by the provider's rule, or passed up as
 * questions to the session that delegated. Fails closed; an answer is good for the one request it was given to.
 */
import type { PermissionOptionKind, RequestPermissionRequest, ToolCallContent } from '@agentclientprotocol/sdk';
import type { JsonValue } from '../../shared/errors.ts';
import type { SubagentPermission, SubagentQuestion } from '../../shared/subagent-protocol.ts';
import type { RunNews } from '../../shared/subagents/run-news.ts';
import type { PermissionAnswer, PermissionRequest } from '../../shared/thread-protocol.ts';

const mostQuestions = 16;
const cancelled: PermissionAnswer = { outcome: 'cancelled' };

export class SelfQuestions {
  readonly #permission: SubagentPermission;
  readonly #news: Pick<RunNews, 'ask' | 'withdraw'>;
  readonly #open = new Map<string, (allow: boolean | undefined) => void>();
  #closed = false;

  constructor(permission: SubagentPermission, news: Pick<RunNews, 'ask' | 'withdraw'>) {
    this.#permission = permission;
    this.#news = news;
  }

  /** True while the session waits for somebody's answer. */
  get isWaiting(): boolean {
    return this.#open.size > 0;
  }

  /** Never rejects. */
  async decide({ requestKey, params }: PermissionRequest): Promise<PermissionAnswer> {
    const request = params as RequestPermissionRequest;
    if (this.#closed) return cancelled;
    switch (this.#permission) {
      case 'allow':
        return pick(request, 'allow_once');
      case 'reject':
        return pick(request, 'reject_once');
      case 'ask': {
        if (this.#open.size >= mostQuestions) return { outcome: 'unavailable' };
        const allow = await this.#ask(requestKey, request);
        return allow === undefined ? cancelled : pick(request, allow ? 'allow_once' : 'reject_once');
      }
      default:
        return this.#permission satisfies never;
    }
  }

  /** A late or second answer is dropped. */
  answer(questionId: string, allow: boolean): void {
    this.#open.get(questionId)?.(allow);
  }

  /** The session does not wait any more: its turn was cut short, or it waited long enough. */
  withdraw(requestKey: string): void {
    this.#open.get(requestKey)?.(undefined);
  }

  /** Takes everything back, and whatever comes later. */
  close(): void {
    this.#closed = true;
    for (const settle of this.#open.values()) settle(undefined);
  }

  #ask(requestKey: string, request: RequestPermissionRequest): Promise<boolean | undefined> {
    return new Promise((resolve) => {
      this.#open.set(requestKey, (allow) => {
        this.#open.delete(requestKey);
        this.#news.withdraw(requestKey);
        resolve(allow);
      });
      this.#news.ask(questionOf(requestKey, request));
    });
  }
}

function pick({ options }: RequestPermissionRequest, kind: PermissionOptionKind): PermissionAnswer {
  const option = options.find((one) => one.kind === kind);
  return option === undefined ? { outcome: 'unavailable' } : { outcome: 'selected', optionId: option.optionId };
}

/** The request was made by this program, and its sizes were bounded there. */
function questionOf(questionId: string, { toolCall }: RequestPermissionRequest): SubagentQuestion {
  const { title, kind, rawInput, content } = toolCall;
  return {
    questionId,
    title: title ?? 'a call without a title',
    toolKind: kind ?? 'other',
    ...(rawInput === undefined ? {} : { rawInput: rawInput as JsonValue }),
    content: (content ?? []).flatMap(textOf),
  };
}

function textOf(content: ToolCallContent): string[] {
  if (content.type === 'content' && content.content.type === 'text') return [content.content.text];
  if (content.type === 'diff') return [`${content.path}\n${content.newText}`];
  return [];
}
