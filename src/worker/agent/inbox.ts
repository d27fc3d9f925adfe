/**
 * What waits for the next step: notices of the program, and messages that a person sends into the running turn.
 */
import type { PromptBlock } from '../../shared/events.ts';
import { bytesPerChar } from '../memory/session-memory.ts';

const mostNotices = 32;
const mostSteers = 64;
const longestNotice = 8192;

export interface InboxMessage {
  readonly source: 'steer' | 'notice';
  /** Under which it is logged, where the client has named it. */
  readonly messageId?: string;
  readonly content: readonly PromptBlock[];
}

export class Inbox {
  readonly #notices: InboxMessage[] = [];
  readonly #steers: InboxMessage[] = [];

  /** What it takes in memory, at most. */
  get bytes(): number {
    // Read at every event, and nearly always empty.
    if (this.#notices.length === 0 && this.#steers.length === 0) return 0;
    const blocks = [...this.#notices, ...this.#steers].flatMap(({ content }) => content);
    return bytesPerChar * blocks.reduce((sum, block) => sum + blockChars(block), 0);
  }

  get hasSteers(): boolean {
    return this.#steers.length > 0;
  }

  /** Says whether there was room. */
  addSteer(content: readonly PromptBlock[], messageId?: string): boolean {
    if (this.#steers.length >= mostSteers) return false;
    this.#steers.push({ source: 'steer', content, ...(messageId === undefined ? {} : { messageId }) });
    return true;
  }

  /** Past the bound the oldest notice is dropped: the newest says more about the state of things. */
  addNotice(text: string): void {
    this.#notices.push({ source: 'notice', content: [{ type: 'text', text: text.slice(0, longestNotice) }] });
    if (this.#notices.length > mostNotices) this.#notices.shift();
  }

  /**
   * Hands out everything that waits: notices first, so that a person's word stands last. What `take` throws at stays here, and all
   * behind it.
   */
  claim(take: (message: InboxMessage) => void): void {
    handOut(this.#notices, take);
    handOut(this.#steers, take);
  }

  /** The steers alone; notices wait for the next turn. */
  claimSteers(take: (message: InboxMessage) => void): void {
    handOut(this.#steers, take);
  }
}

function blockChars(block: PromptBlock): number {
  return Object.values(block).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}

function handOut(waiting: InboxMessage[], take: (message: InboxMessage) => void): void {
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    take(next);
    waiting.shift();
  }
}
