/**
 * What a client shows after the updates of one session, however they were cut: messages with their whole text, cards with their
 * last members, terminals with all that was written into them. Throws at an update that a careful client would stumble over.
 */

const chunkKinds = new Set(['agent_message_chunk', 'agent_thought_chunk', 'user_message_chunk']);

export interface ShownCard {
  readonly id: string;
  /** Members as they stand now, the terminal's `_meta` left out. */
  members: Record<string, unknown>;
  status: string;
  readonly statuses: string[];
  terminal?: { cwd: unknown; output: string; exits: unknown[] };
}

interface ShownMessage {
  readonly kind: string;
  readonly messageId: string;
  readonly content: unknown[];
}

export class ClientScreen {
  readonly entries: unknown[] = [];
  readonly cards = new Map<string, ShownCard>();
  #message: ShownMessage | undefined;

  /** @throws Error that says which promise the update breaks */
  take(update: any): void {
    if (chunkKinds.has(update.sessionUpdate)) return this.#takeChunk(update);
    if (update.sessionUpdate === 'tool_call') return this.#takeCall(update);
    if (update.sessionUpdate === 'tool_call_update') return this.#takeUpdate(update);
    this.#message = undefined;
    this.entries.push(update);
  }

  takeAll(updates: readonly any[]): this {
    for (const update of updates) this.take(update);
    return this;
  }

  /** Calls that are still pending or running. */
  get open(): string[] {
    return [...this.cards.values()].filter(({ status }) => status !== 'completed' && status !== 'failed').map(({ id }) => id);
  }

  card(id: string): ShownCard {
    const card = this.cards.get(id);
    if (card === undefined) throw new Error(`no card ${id}; there are ${[...this.cards.keys()].join(', ')}`);
    return card;
  }

  /** Everything but messages of the person, for a comparison. `known` leaves other cards out. */
  view(known: (id: string) => boolean = () => true): unknown[] {
    return this.entries.filter((entry: any) => entry.kind !== 'user_message_chunk' && (!this.cards.has(entry.id) || known(entry.id)));
  }

  #takeChunk({ sessionUpdate: kind, messageId, content }: any): void {
    if (typeof messageId !== 'string' || messageId === '') throw new Error(`a ${kind} without messageId`);
    const open = this.#message;
    const message: ShownMessage =
      open !== undefined && open.kind === kind && open.messageId === messageId ? open : { kind, messageId, content: [] };
    if (message !== open) this.entries.push(message);
    this.#message = message;
    const last: any = message.content.at(-1);
    if (content.type === 'text' && last?.type === 'text') message.content.splice(-1, 1, { ...last, text: last.text + content.text });
    else message.content.push(content);
  }

  #takeCall({ sessionUpdate: _kind, toolCallId: id, status, _meta, ...members }: any): void {
    const known = this.cards.get(id);
    if (status !== 'pending') throw new Error(`call ${id} begins as ${status}`);
    if (members.kind === undefined) throw new Error(`call ${id} has no kind`);
    // Only a terminal may be announced again: clients make one for nothing else than a tool_call.
    if (known !== undefined && (known.status !== 'pending' || _meta?.terminal_info === undefined || known.terminal !== undefined))
      throw new Error(`call ${id} is announced a second time`);
    this.#checkMembers(id, members);
    const card: ShownCard = known ?? { id, members: {}, status, statuses: [status] };
    mergeMembers(card, members);
    if (_meta?.terminal_info !== undefined) {
      if (_meta.terminal_info.terminal_id !== id) throw new Error(`call ${id} has a terminal of another id`);
      card.terminal = { cwd: _meta.terminal_info.cwd, output: '', exits: [] };
    }
    if (known !== undefined) return;
    this.#message = undefined;
    this.cards.set(id, card);
    this.entries.push(card);
  }

  #takeUpdate({ sessionUpdate: _kind, toolCallId: id, status, _meta, ...members }: any): void {
    const card = this.cards.get(id);
    if (card === undefined) throw new Error(`an update of ${id}, which was never announced`);
    if (card.status === 'completed' || card.status === 'failed') throw new Error(`an update of ${id}, which is ${card.status}`);
    if (status === 'pending' || (status === 'in_progress' && card.status !== 'pending')) throw new Error(`${card.status} became ${status}`);
    this.#checkMembers(id, members);
    if (card.terminal !== undefined && members.content !== undefined && !hasTerminal(members.content))
      throw new Error(`the terminal of ${id} is replaced`);
    mergeMembers(card, members);
    if (_meta?.terminal_output !== undefined || _meta?.terminal_exit !== undefined) this.#takeTerminal(card, _meta);
    if (status === undefined) return;
    card.status = status;
    card.statuses.push(status);
    if ((status === 'completed' || status === 'failed') && card.terminal !== undefined && card.terminal.exits.length !== 1)
      throw new Error(`the terminal of ${id} has ${card.terminal.exits.length} exits at its end`);
  }

  #takeTerminal(card: ShownCard, { terminal_output: output, terminal_exit: exit }: any): void {
    if (card.terminal === undefined) throw new Error(`output for a terminal of ${card.id}, which has none`);
    if (card.terminal.exits.length > 0) throw new Error(`output behind the exit of ${card.id}`);
    for (const part of [output, exit]) {
      if (part !== undefined && part.terminal_id !== card.id) throw new Error(`a terminal of another id in ${card.id}`);
    }
    if (output !== undefined) card.terminal.output += output.data;
    if (exit !== undefined) card.terminal.exits.push({ exit_code: exit.exit_code, signal: exit.signal });
  }

  #checkMembers(id: string, { title, locations, content, kind }: any): void {
    if (title !== undefined && (/[\r\n]/.test(title) || title === '')) throw new Error(`the title of ${id} is not one line`);
    if (kind === null) throw new Error(`the kind of ${id} is taken away`);
    const paths = [...(locations ?? []), ...(content ?? []).filter((block: any) => block.type === 'diff')].map(({ path }) => path);
    const relative = paths.find((path) => !path.startsWith('/'));
    if (relative !== undefined) throw new Error(`call ${id} names the relative path ${relative}`);
    if ((locations ?? []).some(({ line }: any) => line !== undefined && line < 1)) throw new Error(`call ${id} counts lines from 0`);
  }
}

function hasTerminal(content: readonly any[]): boolean {
  return content.some(({ type }) => type === 'terminal');
}

/** Null and an empty list say that there is nothing, as a member that was never there does. */
function mergeMembers(card: ShownCard, members: object): void {
  for (const [name, value] of Object.entries(members)) {
    const isCleared = value === null || (Array.isArray(value) && value.length === 0);
    if (isCleared) delete card.members[name];
    else card.members[name] = value;
  }
}
