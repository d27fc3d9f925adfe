/**
 * What waits for the next step: notices of the program, and messages that a person sends into the running turn.
 */
import type { PromptBlock } from '../../shared/events.ts';

const mostNotices = 32;
const mostSteers = 64;
const longestNotice = 8192;

export interface InboxMessage {
  readonly source: 'steer' | 'notice';
  readonly content: readonly PromptBlock[];
}

export class Inbox {
  #notices: InboxMessage[] = [];
  #steers: InboxMessage[] = [];

  get hasSteers(): boolean {
    return this.#steers.length > 0;
  }

  /** Says whether there was room. */
  addSteer(content: readonly PromptBlock[]): boolean {
    if (this.#steers.length >= mostSteers) return false;
    this.#steers.push({ source: 'steer', content });
    return true;
  }

  /** Past the bound the oldest notice is dropped: the newest says more about the state of things. */
  addNotice(text: string): void {
    this.#notices.push({ source: 'notice', content: [{ type: 'text', text: text.slice(0, longestNotice) }] });
    if (this.#notices.length > mostNotices) this.#notices.shift();
  }

  /** Takes everything that waits: notices first, so that a person's word stands last. */
  claim(): readonly InboxMessage[] {
    const claimed = [...this.#notices, ...this.#steers];
    this.#notices = [];
    this.#steers = [];
    return claimed;
  }

  /** Takes the steers alone; notices wait for the next turn. */
  claimSteers(): readonly InboxMessage[] {
    const claimed = this.#steers;
    this.#steers = [];
    return claimed;
  }
}
