/**
 * What a session has shown, in the order in which it came: its messages with their texts, and its cards as they stand at the end. Made
 * of what a client was sent, or of what a log projects to, so that the two can be compared by the ids of their parts.
 */
import { ClientScreen, type ShownCard } from './client-screen.ts';

/** A card of a call that was never logged: it was pending, ended as failed, and says that nothing was run. */
const draftEnd = /"text":"(Discarded: |Not run: the turn ended while|The model did not finish this call)/;

/** News of MCP servers, for a client that has no notices: no load shows them again. */
const newsId = /^mcp-/;

/** Kinds of updates that are news of a moment, or choices that stand elsewhere. */
const passing = new Set(['available_commands_update', 'current_mode_update', 'config_option_update', 'notice', 'user_message_chunk']);

export class SessionPicture {
  readonly #screen = new ClientScreen();
  readonly #messages = new Map<string, string>();
  readonly #order = new Map<string, 'message' | 'card'>();
  #drafts: Set<string> | undefined;

  take(update: any): void {
    const { sessionUpdate: kind, messageId, toolCallId, content } = update;
    if (passing.has(kind) || newsId.test(messageId ?? '')) return;
    if (kind === 'agent_message_chunk' || kind === 'agent_thought_chunk') {
      this.#order.set(messageId, 'message');
      this.#messages.set(messageId, (this.#messages.get(messageId) ?? '') + (content.text ?? JSON.stringify(content)));
      return;
    }
    if (kind !== 'tool_call' && kind !== 'tool_call_update') return;
    this.#screen.take(update);
    this.#order.set(toolCallId, 'card');
  }

  takeAll(updates: readonly unknown[]): this {
    for (const update of updates) this.take(update);
    return this;
  }

  /** Ids of messages and cards, in the order in which they were first shown; without drafts that never became calls. */
  get ids(): string[] {
    this.#drafts ??= new Set([...this.#screen.cards.values()].filter(isDraft).map(({ id }) => id));
    return [...this.#order.keys()].filter((id) => this.#drafts?.has(id) !== true);
  }

  /** Every text that was put together of pieces. */
  get texts(): string[] {
    return [...this.#messages.values(), ...[...this.#screen.cards.values()].map(({ terminal }) => terminal?.output ?? '')];
  }

  /** Cards that are still pending or running. */
  get open(): string[] {
    return this.#screen.open;
  }

  isMessage(id: string): boolean {
    return this.#order.get(id) === 'message';
  }

  /** A message's text; what a card shows at its end, output that a terminal had while it ran left out. */
  shown(id: string): string {
    if (this.isMessage(id)) return this.#messages.get(id) ?? '';
    const { members, status, terminal } = this.#screen.card(id);
    return JSON.stringify(sorted({ ...members, status, ...(terminal === undefined ? {} : { exits: terminal.exits }) }));
  }
}

function isDraft({ statuses, members }: ShownCard): boolean {
  return statuses.join() === 'pending,failed' && draftEnd.test(JSON.stringify(members['content']));
}

/** With the members of every object in one order: which it is means nothing. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}
