/**
 * Learns from a session's events what it is called: the title that was given last, and the one that its first prompt gives.
 */
import type { EventData, LogEvent } from '../../shared/events.ts';
import { promptTitle } from '../../shared/log/session-title.ts';

/** Characters of the prompt that are kept. */
const keptOfPrompt = 2000;

export interface TitledPrompt {
  readonly title: string;
  /** The beginning of what was typed. */
  readonly text: string;
  /** Too long, as with images, for a list that reads the beginnings of logs. */
  readonly isLong: boolean;
}

/** Characters of all blocks; a list reads 64 KB of a log. */
const longPrompt = 32 * 1024;

export class TitleFinder {
  #given: string | undefined;
  #prompt: TitledPrompt | undefined;
  #time = 0;

  observe(event: LogEvent): void {
    // To be put on a thread is nothing that happened to the conversation.
    if (event.type !== 'thread/attached') this.#time = event.time;
    if (event.type === 'session/title') this.#given = event.data.title;
    else if (event.type === 'user/message' && this.#prompt === undefined && event.data.source === 'prompt') this.#take(event.data);
  }

  /** As the log has it. */
  get given(): string | undefined {
    return this.#given;
  }

  /** The first prompt that says something. */
  get prompt(): TitledPrompt | undefined {
    return this.#prompt;
  }

  /** What to show of a log that has no title, with the time of its last event in epoch milliseconds; `undefined` where it has one, or nothing to make one of. */
  get unlogged(): { readonly title: string; readonly time: number } | undefined {
    const title = this.#given === undefined ? this.#prompt?.title : undefined;
    return title === undefined ? undefined : { title, time: this.#time };
  }

  #take({ content, shown }: EventData['user/message']): void {
    const typed = shown ?? content;
    const title = promptTitle(typed);
    if (title === undefined) return;
    const texts = typed.flatMap((block) => (block.type === 'text' ? [block.text.slice(0, keptOfPrompt)] : []));
    const chars = [...content, ...(shown ?? [])].reduce(
      (sum, block) => sum + ('text' in block ? block.text.length : 0) + ('data' in block ? block.data.length : 0),
      0,
    );
    this.#prompt = { title, text: texts.join('\n').slice(0, keptOfPrompt), isLong: chars > longPrompt };
  }
}
