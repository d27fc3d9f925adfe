/**
 * Gathers what one run's child says: the text of its answer, and news for whoever watches.
 */
import type { SubagentUsage } from '../../../shared/subagent-protocol.ts';
import type { RunNews } from '../../../shared/subagents/run-news.ts';
import { ChildText } from './child-text.ts';
import { ImageFiles } from './image-files.ts';
import { readUpdate } from './read-update.ts';
import { ToolCards } from './tool-cards.ts';

const maxPieceChars = 16 * 1024;

export class RunCollector {
  readonly cards = new ToolCards();
  readonly #news: RunNews;
  readonly #text = new ChildText();
  readonly #images: ImageFiles;
  #usage: SubagentUsage | undefined;
  #costUsd: number | undefined;
  #lastUpdate = performance.now();

  constructor(news: RunNews, spillDir: string) {
    this.#news = news;
    this.#images = new ImageFiles(spillDir);
  }

  /** On the clock of `performance.now()`. */
  get lastUpdate(): number {
    return this.#lastUpdate;
  }

  readonly take = (raw: unknown): void => {
    this.#lastUpdate = performance.now();
    const update = readUpdate(raw);
    switch (update?.kind) {
      case undefined:
        return;
      case 'text':
        return this.#tellText(this.#text.add(update.text, update.messageId));
      case 'image':
        return this.#images.save(update.data, update.mimeType, (image) => this.#news.add(image));
      case 'tool': {
        this.#text.interrupt();
        const change = this.cards.update(update.callId, update.card);
        if (change !== undefined) this.#news.add(change);
        return;
      }
      case 'plan':
        return this.#news.add({ kind: 'plan', entries: update.entries });
      case 'usage':
        return this.#takeUsage(update.usage, update.costUsd);
      default:
        return update satisfies never;
    }
  };

  /** The child's answer, when all that came with it is stored: its last message, where it marks them. */
  async answer(): Promise<string> {
    await this.#images.settled();
    return await this.#text.lastMessage();
  }

  /** All of the child's text, when all that came with it is stored. */
  async finish(): Promise<string> {
    await this.#images.settled();
    return await this.#text.all();
  }

  /** The child's text as far as it came. */
  async partial(): Promise<string> {
    return await this.#text.all();
  }

  /** Stores nothing more. Fulfils when nothing is being stored. */
  async close(): Promise<void> {
    await this.#images.close();
  }

  /** All that is known about what the run has used; `last` is what the child said at the end. */
  usage(last: SubagentUsage | undefined): SubagentUsage | undefined {
    const usage = last ?? this.#usage;
    if (this.#costUsd === undefined || usage?.costUsd !== undefined) return usage;
    return { ...(usage ?? nothing), costUsd: this.#costUsd };
  }

  #takeUsage(usage: SubagentUsage | undefined, costUsd: number | undefined): void {
    this.#costUsd = costUsd ?? this.#costUsd;
    this.#usage = usage ?? this.#usage;
    const all = this.usage(undefined);
    if (all !== undefined) this.#news.add({ kind: 'usage', usage: all });
  }

  #tellText(text: string): void {
    for (let start = 0; start < text.length; ) {
      let end = Math.min(start + maxPieceChars, text.length);
      // Never between the halves of a character.
      if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1;
      this.#news.add({ kind: 'text', text: text.slice(start, end) });
      start = end;
    }
  }
}

const nothing: SubagentUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, reasoningTokens: 0 };
